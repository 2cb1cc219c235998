import { ApiProblem } from "../api/client";
import "./controls.css";

interface ProblemNoteProps {
  error: unknown;
  onRetry?: () => void;
}

/** What happened, what is safe, what to do. Renders nothing without an error. */
export function ProblemNote({ error, onRetry }: ProblemNoteProps) {
  if (!error) return null;
  const problem = error instanceof ApiProblem ? error : null;
  return (
    <div className="notice coral" role="alert">
      <b>{problem?.title ?? "Something here went wrong"}</b>
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
      {onRetry && (
        <button type="button" className="btn small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
