import type { RunDetail } from "@/shared/api/runs";
import { ContextView } from "./context-view";
import { MemoryView } from "./memory-view";
import { ReportVersions } from "./report-versions";
import type { StateView } from "./state-views";
import { SubgoalsView } from "./subgoals-view";
import "./graph-state.css";

interface GraphStateViewProps {
  run: RunDetail;
  view: StateView;
  /** Sequence number of the last step of the run. */
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** The part of the state that is specific to the graph: memory, report versions, context or subgoals. */
export function GraphStateView({ view, ...props }: GraphStateViewProps) {
  switch (view) {
    case "versions":
      return <ReportVersions {...props} />;
    case "context":
      return <ContextView {...props} />;
    case "subgoals":
      return <SubgoalsView {...props} />;
    case "memory":
      return <MemoryView {...props} />;
  }
}
