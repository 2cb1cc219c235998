import { hasEnded, type RunDetail } from "@/shared/api/runs";
import { ending } from "@/shared/format/run-words";

/** In the report's place where the server said that there is none; never where it could not be asked. */
export function NoReport({ run }: { run: RunDetail }) {
  if (!hasEnded(run)) {
    return (
      <div className="empty no-report">
        <b>No report yet</b>
        It is written when the evidence is enough, or at a limit. “Stop and write now” writes what there is at once.
      </div>
    );
  }
  if (run.stop_reason === "answered") {
    return (
      <div className="empty no-report">
        <b>No report</b>
        The run ended with enough evidence, but no report of it is stored. Its steps show what it found.
      </div>
    );
  }
  const words = ending(run.stop_reason);
  return (
    <div className="empty no-report">
      <b>No report</b>
      {words ? `${words.why} ${words.next}` : "The run ended without one."}
    </div>
  );
}
