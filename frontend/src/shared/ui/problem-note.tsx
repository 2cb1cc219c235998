import { ApiProblem, MissingCode } from "../api/client";
import "./controls.css";

interface ProblemNoteProps {
  error: unknown;
  onRetry?: () => unknown;
  /** Data that came before the failure is still shown. */
  stale?: boolean;
}

/** What happened, what is safe, what to do. Renders nothing without an error. */
export function ProblemNote({ error, onRetry, stale = false }: ProblemNoteProps) {
  if (!error) return null;
  const problem = error instanceof ApiProblem ? error : null;
  // Code of the page that is not there any more comes with a reload, and so does a way out of an error of the page.
  const reload = !problem || problem instanceof MissingCode;
  return (
    <div className="notice coral" role="alert">
      <b>{problem?.title ?? "Something in this view went wrong"}</b>
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
      {stale && <p>What is shown here was loaded before and may be out of date.</p>}
      {(onRetry || reload) && (
        <p className="notice-acts">
          {onRetry && (
            <button type="button" className="btn small" onClick={() => onRetry()}>
              Try again
            </button>
          )}
          {reload && (
            <button type="button" className="btn small" onClick={() => location.reload()}>
              Reload the page
            </button>
          )}
        </p>
      )}
    </div>
  );
}
