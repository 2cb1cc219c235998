import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import type { Report } from "@/shared/api/reports";
import { Tabs } from "@/shared/ui/tabs";
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
  const citedCount = new Set(report?.citations.map((citation) => citation.source_id)).size;
  const tabs = TABS.filter((name) => labels[name]).map((name) => ({
    key: name,
    label: (
      <>
        {labels[name]}
        {name === "sources" && citedCount > 0 && <span className="num quiet"> {citedCount}</span>}
        {name === "report" && report && (
          <span className="run-tab-dot">
            <span className="visually-hidden">
              <Trans>, ready</Trans>
            </span>
          </span>
        )}
      </>
    ),
  }));
  return (
    <div className="run-tabs">
      <Tabs label={t`Views of the run`} tabs={tabs} selected={tab} onSelect={onTab} idPrefix="run-" end={children} />
    </div>
  );
}
