import { Trans } from "@lingui/react/macro";
import type { RunDetail } from "@/shared/api/runs";
import { Link } from "@/shared/routing/routing";
import { runError } from "@/shared/texts/failure-texts";
import { buttonClass } from "@/shared/ui/button";

/** Says that a run failed, what is kept and what to do. The error of another run is shown unchanged. */
export function RunFailure({ run }: { run: RunDetail }) {
  if (run.status !== "failed") {
    return run.error ? (
      <p dir="auto" className="notice coral">
        {runError(run)}
      </p>
    ) : null;
  }
  return (
    <div className="notice coral">
      <b>
        <Trans>The run failed.</Trans>
      </b>{" "}
      <Trans>Its steps and findings are kept. Ask again to start a new run with the same question.</Trans>
      <p className="notice-acts">
        <Link to="/" search={{ ask: run.question }} className={buttonClass("standard", true)}>
          <Trans>Ask again</Trans>
        </Link>
      </p>
      {run.error && (
        <details className="notice-details">
          <summary>
            <Trans>Error message</Trans>
          </summary>
          <pre dir="auto" className="mono">
            {runError(run)}
          </pre>
        </details>
      )}
    </div>
  );
}
