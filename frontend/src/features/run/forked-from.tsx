import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { Run } from "@/shared/api/runs";
import { Link } from "@/shared/routing/routing";

/** Link to the step that a fork started from. Renders nothing if the run is not a fork or its origin was deleted. */
export function ForkedFrom({ run }: { run: Pick<Run, "id" | "forked_from_id" | "forked_at_seq"> }) {
  if (!run.forked_from_id) return null;
  return (
    <nav className="run-thread" aria-label={t`Origin of this fork`}>
      <span>
        <Trans>Forked from</Trans>
      </span>
      <Link to="/runs/$runId" params={{ runId: run.forked_from_id }}>
        <Trans>step {run.forked_at_seq} of another run</Trans>
      </Link>
      <Link to="/runs/compare" search={{ a: run.forked_from_id, b: run.id }}>
        <Trans>Compare both</Trans>
      </Link>
    </nav>
  );
}
