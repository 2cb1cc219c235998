import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ProblemError, ViewLoadError } from "../api/client";
import { CopyButton } from "./copy-button";
import "./controls.css";

interface ProblemNoteProps {
  error: unknown;
  onRetry?: () => unknown;
  /** Data that was loaded before the error is still shown. */
  isStale?: boolean;
  /** Text for a report of the error, which can be read and copied. Empty means none. */
  details?: string;
}

/** Shows what happened, what is safe and what to do. Renders nothing without an error. */
export function ProblemNote({ error, onRetry, isStale = false, details = "" }: ProblemNoteProps) {
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
      {!problem && (
        <p>
          <Trans>Nothing on the server has changed. Try again. If it happens again, reload the page.</Trans>
        </p>
      )}
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
      {details && (
        <details className="notice-details">
          <summary>
            <Trans>Details for a report</Trans>
          </summary>
          <pre className="mono">{details}</pre>
          <CopyButton text={details}>
            <Trans>Copy the details</Trans>
          </CopyButton>
        </details>
      )}
    </div>
  );
}
