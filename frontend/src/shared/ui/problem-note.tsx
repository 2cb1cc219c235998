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
      <b>{problem?.title ?? "Something went wrong in this view"}</b>
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
      {!problem && <p>Nothing on the server has changed. Try again. If it happens again, reload the page.</p>}
      {isStale && <p>This data was loaded earlier and may be out of date.</p>}
      {(onRetry || offersReload) && (
        <p className="notice-acts">
          {onRetry && (
            <button type="button" className="btn small" onClick={() => onRetry()}>
              Try again
            </button>
          )}
          {offersReload && (
            <button type="button" className="btn small" onClick={() => location.reload()}>
              Reload the page
            </button>
          )}
        </p>
      )}
      {details && (
        <details className="notice-details">
          <summary>Details for a report</summary>
          <pre className="mono">{details}</pre>
          <CopyButton text={details}>Copy the details</CopyButton>
        </details>
      )}
    </div>
  );
}
