import type { RunDetail } from "@/shared/api/runs";
import { ContextView } from "./context-view";
import { flowOf } from "./flows";
import { MemoryView } from "./memory-view";
import { ReportVersions } from "./report-versions";
import { SubgoalsView } from "./subgoals-view";
import "./flow.css";

interface FlowViewProps {
  run: RunDetail;
  /** The run's last step. */
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** What is particular to the run's graph: memory, report versions, context or subgoals. */
export function FlowView(props: FlowViewProps) {
  switch (flowOf(props.run.graph)) {
    case "versions":
      return <ReportVersions {...props} />;
    case "context":
      return <ContextView {...props} />;
    case "subgoals":
      return <SubgoalsView {...props} />;
    default:
      return <MemoryView {...props} />;
  }
}
