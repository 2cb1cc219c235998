import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { isNotFound } from "../api/client";
import { documentTextQuery, passageQuery } from "../api/library";
import { shortHash } from "../format/numbers";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Loaded } from "../ui/loaded";
import styles from "./document-reader.module.css";
import { cutText, type DocumentMark, WINDOW_CHARS, windowOf } from "./document-text";

interface DocumentReaderProps {
  title: string;
  /** Text to show if there are no marks. */
  textId: string;
  /** Passages to mark. The first one is shown at first. */
  marks: readonly DocumentMark[];
  /** What the marked passages are, as in "Cited passages". */
  marksLabel: string;
  onClose(): void;
}

/** A document as its text was stored, with passages of it marked. It is loaded in parts, in both directions. */
export function DocumentReader({ title, textId, marks, marksLabel, onClose }: DocumentReaderProps) {
  const [selected, setSelected] = useState(0);
  const mark = marks[selected];
  const shownText = mark?.text_id ?? textId;
  const first = useQuery(passageQuery(mark ?? { text_id: textId, start: 0, end: 1 }, 0));
  return (
    <Dialog wide open onClose={onClose} title={title}>
      {marks.length > 0 && (
        <p className={styles.marks}>
          <span className="quiet">{marksLabel}</span>
          {marks.map((one, at) => (
            <button
              key={`${one.label} ${one.start}`}
              type="button"
              className="btn small num"
              aria-pressed={at === selected}
              onClick={() => setSelected(at)}
            >
              {one.label}
            </button>
          ))}
        </p>
      )}
      {isNotFound(first.error) ? (
        <p className="quiet">
          <Trans>This text was erased from the library.</Trans>
        </p>
      ) : (
        <Loaded query={first} label={t`the document`}>
          {({ char_count: length, snapshot, name }) => (
            <>
              <DocumentText
                key={`${shownText} ${windowOf(mark?.start ?? 0)}`}
                textId={shownText}
                length={length}
                firstWindow={windowOf(mark?.start ?? 0)}
                marks={marks.filter((one) => one.text_id === shownText)}
                selected={mark}
              />
              <p className={`quiet ${styles.foot}`} title={snapshot}>
                <bdi>{name}</bdi> ·{" "}
                <Trans>
                  Text as it was stored, <span className="mono">{shortHash(snapshot)}</span>
                </Trans>
              </p>
            </>
          )}
        </Loaded>
      )}
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Close</Trans>
        </Button>
      </div>
    </Dialog>
  );
}

interface DocumentTextProps {
  textId: string;
  /** Code points of the whole text. */
  length: number;
  firstWindow: number;
  marks: readonly DocumentMark[];
  /** The mark that is scrolled into view. `undefined` means the beginning. */
  selected: DocumentMark | undefined;
}

function DocumentText({ textId, length, firstWindow, marks, selected }: DocumentTextProps) {
  const text = useInfiniteQuery(documentTextQuery(textId, length, firstWindow, WINDOW_CHARS));
  const current = useRef<HTMLElement>(null);
  const isLoaded = text.data !== undefined;
  useEffect(() => {
    if (isLoaded && selected) current.current?.scrollIntoView({ block: "center" });
  }, [isLoaded, selected]);
  return (
    <Loaded query={text} label={t`the text`}>
      {({ pages }) => (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus for the arrow keys
        <section className={styles.text} dir="auto" tabIndex={0} aria-label={t`Text of the document`}>
          {text.hasPreviousPage && (
            <Button small disabled={text.isFetching} onClick={() => text.fetchPreviousPage()}>
              <Trans>Earlier text</Trans>
            </Button>
          )}
          {pages.map((page) => (
            <span key={page.start}>
              {cutText(page.text, page.start, marks).map((part, at) =>
                part.mark === null ? (
                  // The parts of a stored text never change.
                  // biome-ignore lint/suspicious/noArrayIndexKey: see above
                  <span key={at}>{part.text}</span>
                ) : (
                  <mark
                    // biome-ignore lint/suspicious/noArrayIndexKey: see above
                    key={at}
                    ref={part.isStart && marks[part.mark] === selected ? current : undefined}
                    className={marks[part.mark] === selected ? styles.current : undefined}
                  >
                    {part.text}
                  </mark>
                ),
              )}
            </span>
          ))}
          {text.hasNextPage && (
            <Button small disabled={text.isFetching} onClick={() => text.fetchNextPage()}>
              <Trans>More text</Trans>
            </Button>
          )}
        </section>
      )}
    </Loaded>
  );
}
