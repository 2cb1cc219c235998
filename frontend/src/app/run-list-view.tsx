import { GettingStarted } from "@/features/home/getting-started";
import { RunsView, type RunsViewProps } from "@/features/runs/runs-view";

interface RunListViewProps extends Omit<RunsViewProps, "gettingStarted"> {
  onExample(question: string): void;
}

/** The list of runs. Its code is loaded after the search and the filters above it. */
export function RunListView({ onExample, ...props }: RunListViewProps) {
  return <RunsView {...props} gettingStarted={<GettingStarted onExample={onExample} />} />;
}
