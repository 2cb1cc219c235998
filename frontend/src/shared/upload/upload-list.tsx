import type { Uploaded } from "../api/library";
import { count, counted } from "../format/numbers";
import { ProblemNote } from "../ui/problem-note";
import type { UploadState } from "./upload";
import { sourcesOf } from "./use-upload";
import "./upload-list.css";

const OUTCOME: Record<Uploaded["outcome"], string> = {
  added: "added",
  unchanged: "already here",
  replaced: "new version",
  refused: "refused",
  failed: "not added",
};

/** What became of each file; those that are not in the library first, with the remedy. */
export function UploadList({ state, onClear }: { state: UploadState; onClear?: () => void }) {
  const nothingToRead = state.empty && !state.busy ? <NothingToRead /> : null;
  if (state.total === 0 && state.unsent === 0 && !state.error) return nothingToRead;
  const refused = state.results.filter((result) => result.outcome === "refused");
  const failed = state.results.filter((result) => result.outcome === "failed");
  const taken = state.results.filter((result) => result.outcome !== "refused" && result.outcome !== "failed");
  const shown = [...failed, ...refused, ...taken].slice(0, 8);
  const more = state.results.length - shown.length;
  return (
    <div className="uploads">
      <p className="uploads-head" role="status">
        {state.busy
          ? `Reading ${counted(state.total, "document")}: ${state.done} done`
          : [
              `${counted(sourcesOf(taken).length, "document")} ready`,
              refused.length > 0 && `${refused.length} refused`,
              failed.length > 0 && `${failed.length} not added`,
              state.unsent > 0 && `${count(state.unsent)} not sent`,
            ]
              .filter(Boolean)
              .join(", ")}
        {onClear && !state.busy && (
          <button type="button" className="btn plain small" onClick={onClear}>
            Clear
          </button>
        )}
      </p>
      {state.unsent > 0 && <Unsent files={state.unsent} />}
      {state.busy && <progress max={state.total} value={state.done} aria-label="Documents read" />}
      <ul>
        {shown.map((result, at) => (
          // Two files of one name are two rows, and rows only ever follow one another.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <li key={`${result.name} ${at}`} className={result.outcome}>
            <span className="uploads-name">{result.name}</span>
            <span className="uploads-outcome">{OUTCOME[result.outcome]}</span>
            {result.problem && <span className="uploads-problem">{result.problem}</span>}
          </li>
        ))}
        {more > 0 && <li className="quiet">and {more} more</li>}
      </ul>
      {nothingToRead}
      <ProblemNote error={state.error} />
    </div>
  );
}

/** Only a person can hand the page these files again. */
function Unsent({ files }: { files: number }) {
  return (
    <p className="notice sun" role="status">
      {counted(files, "document")} {files === 1 ? "was" : "were"} not sent, because the page was left or reloaded
      before. Add {files === 1 ? "it" : "them"} again, with the same folder where there was one; what is here already is
      not read twice.
    </p>
  );
}

function NothingToRead() {
  return (
    <p className="notice sun" role="status">
      Nothing that you added can be read. The library reads PDF, HTML, Markdown, plain text and Word documents.
    </p>
  );
}
