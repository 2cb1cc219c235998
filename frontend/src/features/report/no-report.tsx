import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { hasEnded, type RunDetail } from "@/shared/api/runs";
import { stopReasonInfo } from "@/shared/format/run-labels";

/** Shown instead of the report if the server returned none. Not shown if the request failed. */
export function NoReport({ run }: { run: RunDetail }) {
  if (!hasEnded(run)) {
    return (
      <div className="empty no-report">
        <Trans>
          <b>No report yet</b>
          The report is written when there is enough evidence or when a limit is reached. “Finish early” writes it now
          from the evidence so far.
        </Trans>
      </div>
    );
  }
  if (run.stop_reason === "answered") {
    return (
      <div className="empty no-report">
        <Trans>
          <b>No report</b>
          The run ended with enough evidence, but no report is stored. Its steps show the evidence.
        </Trans>
      </div>
    );
  }
  const info = stopReasonInfo(run.stop_reason);
  return (
    <div className="empty no-report">
      <b>
        <Trans>No report</Trans>
      </b>
      {info ? `${info.explanation} ${info.suggestion}` : t`The run ended without a report.`}
    </div>
  );
}
