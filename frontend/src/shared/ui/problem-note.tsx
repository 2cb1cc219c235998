import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ProblemError, ViewLoadError } from "../api/client";
import "./controls.css";

interface ProblemNoteProps {
  error: unknown;
  onRetry?: () => unknown;
  /** Data that was loaded before the error is still shown. */
  isStale?: boolean;
}

/** Shows what happened, what is safe and what to do. Renders nothing without an error. */
export function ProblemNote({ error, onRetry, isStale = false }: ProblemNoteProps) {
  if (!error) return null;
  const problem = error instanceof ProblemError ? error : null;
  // A reload loads code that was replaced by an update, and it recovers from an error of the page.
  const offersReload = !problem || problem instanceof ViewLoadError;
  return (
    <div className="notice coral" role="alert">
      <b>{problem?.title ?? t`Something went wrong in this view`}</b>
      <p>
        {problem ? problem.detail : String(error)}
        {problem?.field && (
          <>
            {" "}
            <span className="tag">{problem.field}</span>
          </>
        )}
      </p>
      {problem?.remedy && <p>{problem.remedy}</p>}
      {isStale && (
        <p>
          <Trans>This data was loaded earlier and may be out of date.</Trans>
        </p>
      )}
      {(onRetry || offersReload) && (
        <p className="notice-acts">
          {onRetry && (
            <button type="button" className="btn small" onClick={() => onRetry()}>
              <Trans>Try again</Trans>
            </button>
          )}
          {offersReload && (
            <button type="button" className="btn small" onClick={() => location.reload()}>
              <Trans>Reload the page</Trans>
            </button>
          )}
        </p>
      )}
    </div>
  );
}
