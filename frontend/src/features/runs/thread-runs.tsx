import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { type Run, runName } from "@/shared/api/runs";
import { threadQuery } from "@/shared/api/threads";
import { formatAgo } from "@/shared/format/numbers";
import { runStatusLabel } from "@/shared/format/run-labels";
import { Link } from "@/shared/routing/routing";
import { useNow } from "@/shared/ui/hooks";
import { Loaded } from "@/shared/ui/loaded";
import styles from "./runs.module.css";

/** The other runs of a thread, the latest first, below the run that stands for the thread. */
export function ThreadRuns({ run }: { run: Run }) {
  const thread = useQuery(threadQuery(run.thread_id));
  return (
    <Loaded query={thread} label={t`the thread`}>
      {({ runs }) => (
        <ol className={styles.thread} aria-label={t`Earlier questions of the thread`}>
          {runs
            .filter((one) => one.id !== run.id)
            .reverse()
            .map((one) => (
              <ThreadRun key={one.id} run={one} />
            ))}
        </ol>
      )}
    </Loaded>
  );
}

function ThreadRun({ run }: { run: Run }) {
  const now = useNow(30_000);
  const { label, tone } = runStatusLabel(run);
  return (
    <li>
      <Link to="/runs/$runId" params={{ runId: run.id }} search={{}} dir="auto" className={styles.threadName}>
        {runName(run)}
      </Link>
      <time className="quiet" dateTime={run.created_at}>
        {formatAgo(run.created_at, now)}
      </time>
      <span className={`pill ${tone}`}>
        <i />
        {label}
      </span>
    </li>
  );
}
