import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type Run, runName } from "@/shared/api/runs";
import { threadQuery } from "@/shared/api/threads";
import { Link } from "@/shared/routing/routing";
import { Failure } from "@/shared/ui/loaded";

/** Other questions of the thread, in order. Renders nothing if there are none. */
export function ThreadTrail({ run }: { run: Pick<Run, "id" | "thread_id" | "created_at"> }) {
  const thread = useQuery(threadQuery(run.thread_id));
  if (!thread.data) return <Failure query={thread} />;
  const others = thread.data.runs
    .filter((other) => other.id !== run.id)
    .sort((left, right) => left.created_at.localeCompare(right.created_at));
  if (others.length === 0) return null;
  const earlier = others.filter((other) => other.created_at < run.created_at);
  const later = others.filter((other) => other.created_at >= run.created_at);
  return (
    <nav className="run-thread" aria-label={t`Questions of this thread`}>
      {earlier.length > 0 && (
        <span>
          <Trans>Follows</Trans>
        </span>
      )}
      {earlier.slice(-2).map((other) => (
        <RunLink key={other.id} run={other} />
      ))}
      {later.length > 0 && <span>{earlier.length > 0 ? t`· continued in` : t`Continued in`}</span>}
      {later.slice(0, 2).map((other) => (
        <RunLink key={other.id} run={other} />
      ))}
      <CompareLink first={earlier.at(-1)?.id ?? run.id} second={earlier.length > 0 ? run.id : (later[0]?.id ?? "")} />
    </nav>
  );
}

/** Leads to a comparison of two runs of the thread. */
function CompareLink({ first, second }: { first: string; second: string }) {
  return (
    <Link to="/runs/compare" search={{ a: first, b: second }}>
      <Trans>Compare both</Trans>
    </Link>
  );
}

function RunLink({ run }: { run: Run }) {
  return (
    <Link dir="auto" to="/runs/$runId" params={{ runId: run.id }}>
      {runName(run)}
    </Link>
  );
}
