import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { KeyboardEvent, ReactNode } from "react";
import type { Report } from "@/shared/api/reports";
import { TABS, type Tab } from "./search-params";

interface RunTabsProps {
  tab: Tab;
  /** Labels of the tabs that the run has. */
  labels: Partial<Record<Tab, string>>;
  /** The report if it is loaded. Otherwise the tabs show nothing about it. */
  report: Report | null | undefined;
  onTab(tab: Tab): void;
  /** Content at the end of the row. */
  children: ReactNode;
}

export function RunTabs({ tab, labels, report, onTab, children }: RunTabsProps) {
  const visible = TABS.filter((name) => labels[name]);
  const handleKeyDown = (event: KeyboardEvent) => {
    const offset = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!offset) return;
    const next = visible[(visible.indexOf(tab) + offset + visible.length) % visible.length];
    if (!next) return;
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  const citedCount = new Set(report?.citations.map((citation) => citation.source_id)).size;
  return (
    <div className="run-tabs">
      <div role="tablist" aria-label={t`Views of the run`} onKeyDown={handleKeyDown}>
        {visible.map((name) => (
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
            {labels[name]}
            {name === "sources" && citedCount > 0 && <span className="num quiet"> {citedCount}</span>}
            {name === "report" && report && (
              <span className="run-tab-dot">
                <span className="visually-hidden">
                  <Trans>, ready</Trans>
                </span>
              </span>
            )}
          </button>
        ))}
      </div>
      <span className="run-tabs-end">{children}</span>
    </div>
  );
}
