import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import type { Uploaded } from "../api/library";
import { joinParts } from "../format/lists";
import { formatCount } from "../format/numbers";
import { ProblemNote } from "../ui/problem-note";
import type { UploadState } from "./upload";
import { listSourceIds } from "./use-upload";
import "./upload-list.css";

const OUTCOME_LABELS: Record<Uploaded["outcome"], MessageDescriptor> = {
  added: msg`added`,
  unchanged: msg`unchanged`,
  replaced: msg`new version`,
  rejected: msg`rejected`,
  failed: msg`not added`,
};

/** The outcome of each file. Files that are not in the library come first, with the solution. */
export function UploadList({ state, onClear }: { state: UploadState; onClear?: () => void }) {
  const unreadableNote = state.hasNoReadableFiles && !state.busy ? <UnreadableNote /> : null;
  if (state.total === 0 && state.unsent === 0 && !state.error) return unreadableNote;
  const rejected = state.results.filter((result) => result.outcome === "rejected");
  const failed = state.results.filter((result) => result.outcome === "failed");
  const added = state.results.filter((result) => result.outcome !== "rejected" && result.outcome !== "failed");
  const visible = [...failed, ...rejected, ...added].slice(0, 8);
  const more = state.results.length - visible.length;
  const done = state.done;
  return (
    <div className="uploads">
      <p className="uploads-head" role="status">
        {state.busy
          ? plural(state.total, {
              one: `Processing # document: ${done} done`,
              other: `Processing # documents: ${done} done`,
            })
          : joinParts(
              [
                plural(listSourceIds(added).length, { one: "# document ready", other: "# documents ready" }),
                rejected.length > 0 && t`${rejected.length} rejected`,
                failed.length > 0 && t`${failed.length} not added`,
                state.unsent > 0 && t`${formatCount(state.unsent)} not sent`,
              ].filter((part) => part !== false),
            )}
        {onClear && !state.busy && (
          <button type="button" className="btn plain small" onClick={onClear}>
            <Trans>Clear</Trans>
          </button>
        )}
      </p>
      {state.unsent > 0 && <UnsentNote files={state.unsent} />}
      {state.busy && <progress max={state.total} value={state.done} aria-label={t`Processed documents`} />}
      <ul>
        {visible.map((result, at) => (
          // Two files with the same name are two rows, and rows are only appended.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <li key={`${result.name} ${at}`} className={result.outcome}>
            <span dir="auto" className="uploads-name">
              {result.name}
            </span>
            <span className="uploads-outcome">{i18n._(OUTCOME_LABELS[result.outcome])}</span>
            {result.problem && <span className="uploads-problem">{result.problem}</span>}
          </li>
        ))}
        {more > 0 && (
          <li className="quiet">
            <Trans>and {more} more</Trans>
          </li>
        )}
      </ul>
      {unreadableNote}
      <ProblemNote error={state.error} />
    </div>
  );
}

/** The page cannot read these files again; the user must add them. */
function UnsentNote({ files }: { files: number }) {
  return (
    <p className="notice sun" role="status">
      <Plural
        value={files}
        one="# document was not sent, because the page was closed or reloaded. Add it again, from the same folder if there was one. Documents that are already in the library are not processed twice."
        other="# documents were not sent, because the page was closed or reloaded. Add them again, from the same folder if there was one. Documents that are already in the library are not processed twice."
      />
    </p>
  );
}

function UnreadableNote() {
  return (
    <p className="notice sun" role="status">
      <Trans>
        None of the added files can be read. The library supports PDF, HTML, Markdown, plain text and Word documents.
      </Trans>
    </p>
  );
}
