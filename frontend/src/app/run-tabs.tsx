import type { KeyboardEvent, ReactNode } from "react";
import type { Report } from "@/shared/api/reports";
import { TABS, type Tab } from "./search-params";

interface RunTabsProps {
  tab: Tab;
  /** Which views the run has, by name. */
  names: Partial<Record<Tab, string>>;
  /** Where it is here; the tabs say nothing about one that is not. */
  report: Report | null | undefined;
  onTab(tab: Tab): void;
  /** What stands at the end of the row. */
  children: ReactNode;
}

export function RunTabs({ tab, names, report, onTab, children }: RunTabsProps) {
  const shown = TABS.filter((name) => names[name]);
  const keys = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = shown[(shown.indexOf(tab) + by + shown.length) % shown.length];
    if (!next) return;
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  const cited = new Set(report?.citations.map((citation) => citation.source_id)).size;
  return (
    <div className="run-tabs">
      <div role="tablist" aria-label="Views of the run" onKeyDown={keys}>
        {shown.map((name) => (
          <button
            key={name}
            id={`tab-${name}`}
            type="button"
            role="tab"
            aria-selected={name === tab}
            aria-controls={name === tab ? `panel-${name}` : undefined}
            tabIndex={name === tab ? 0 : -1}
            onClick={() => onTab(name)}
          >
            {names[name]}
            {name === "sources" && cited > 0 && <span className="num quiet"> {cited}</span>}
            {name === "report" && report && (
              <span className="run-tab-dot">
                <span className="visually-hidden">, ready</span>
              </span>
            )}
          </button>
        ))}
      </div>
      <span className="run-tabs-end">{children}</span>
    </div>
  );
}
