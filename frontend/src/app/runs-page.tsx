import { Trans } from "@lingui/react/macro";
import { RecentRuns } from "@/features/home/recent-runs";
import "./runs-page.css";

interface RunsPageProps {
  search: string;
  onSearch(text: string): void;
  /** Called with a question that the explanation for newcomers offers. */
  onExample(question: string): void;
}

/** All runs, newest first. */
export function RunsPage({ search, onSearch, onExample }: RunsPageProps) {
  return (
    <main className="runs-page">
      <h1>
        <Trans>Runs</Trans>
      </h1>
      <RecentRuns search={search} onSearch={onSearch} onExample={onExample} />
    </main>
  );
}
