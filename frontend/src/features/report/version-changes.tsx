import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { diffWordsWithSpace } from "diff";
import { Fragment } from "react";
import { changesQuery, type ReportChanges } from "@/shared/api/reports";
import { Loaded } from "@/shared/ui/loaded";
import { describeSection, isEmpty } from "./changes";
import styles from "./versions.module.css";

type SentenceChange = ReportChanges["answer"][number];

/** Maximum length of a sentence whose changed words are marked. */
const MAX_DIFF_CHARS = 8_000;

/** The differences of one version of a report from another, by section, sentence and word. */
export function VersionChanges({ runId, old, next }: { runId: string; old: number; next: number }) {
  const changes = useQuery(changesQuery(runId, old, next));
  return (
    <section aria-label={t`Changes from version ${old} to version ${next}`} className={styles.changes}>
      <Loaded
        query={changes}
        label={t`the changes`}
        empty={(loaded) =>
          isEmpty(loaded) ? (
            <p className="quiet">
              <Trans>Both versions have the same sentences with the same sources.</Trans>
            </p>
          ) : null
        }
      >
        {(loaded) => <Changes changes={loaded} />}
      </Loaded>
    </section>
  );
}

function Changes({ changes }: { changes: ReportChanges }) {
  return (
    <>
      {changes.title_before && (
        <p>
          <Trans>
            Title changed, before: <del dir="auto">{changes.title_before}</del>
          </Trans>
        </p>
      )}
      {changes.answer.length > 0 && (
        <>
          <h4>
            <Trans>Short answer</Trans>
          </h4>
          <SentenceChanges changes={changes.answer} />
        </>
      )}
      {changes.sections.map((section, at) => (
        // Two versions never change, and neither do their differences.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <div key={at}>
          <h4 dir="auto">{describeSection(section)}</h4>
          <SentenceChanges changes={section.sentences} />
        </div>
      ))}
    </>
  );
}

function SentenceChanges({ changes }: { changes: readonly SentenceChange[] }) {
  return (
    <ul>
      {changes.map((change, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <li key={at} dir="auto">
          <ChangedSentence {...change} />
        </li>
      ))}
    </ul>
  );
}

function ChangedSentence({ kind, text, before }: SentenceChange) {
  if (kind === "added") return <ins>{text}</ins>;
  if (kind === "removed") return <del>{text}</del>;
  if (before === text) {
    return (
      <>
        {text}{" "}
        <small className="quiet">
          <Trans>other sources</Trans>
        </small>
      </>
    );
  }
  if (text.length + before.length > MAX_DIFF_CHARS) {
    return (
      <>
        <del>{before}</del> <ins>{text}</ins>
      </>
    );
  }
  return diffWordsWithSpace(before, text).map((part, at, parts) => {
    const Element = part.added ? "ins" : part.removed ? "del" : "span";
    const previous = parts[at - 1];
    const replaces = part.added && previous?.removed && !/\s$/.test(previous.value) && !/^\s/.test(part.value);
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one diff never change their order
      <Fragment key={at}>
        {replaces && " "}
        <Element>{part.value}</Element>
      </Fragment>
    );
  });
}
