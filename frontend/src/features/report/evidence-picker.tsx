import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { type EvidencePassage, evidenceQuery } from "@/shared/api/reports";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { Input } from "@/shared/ui/field";
import { useDebounced } from "@/shared/ui/hooks";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import type { NewCitation } from "./edit-model";
import styles from "./evidence-picker.module.css";
import { splitIntoSentences } from "./excerpt";

const SEARCH_DELAY_MS = 250;

interface EvidencePickerProps {
  runId: string;
  open: boolean;
  onClose(): void;
  onCite(citation: NewCitation): void;
}

/** Chooses words to cite from the passages that the run has read. Nothing else can be cited. */
export function EvidencePicker({ runId, open, onClose, onCite }: EvidencePickerProps) {
  return (
    <Dialog open={open} onClose={onClose} title={t`Cite a passage that the run has read`}>
      <Passages runId={runId} onCite={onCite} />
    </Dialog>
  );
}

function Passages({ runId, onCite }: Pick<EvidencePickerProps, "runId" | "onCite">) {
  const [text, setText] = useState("");
  const query = useInfiniteQuery(evidenceQuery(runId, useDebounced(text.trim(), SEARCH_DELAY_MS)));
  const [chosen, setChosen] = useState<EvidencePassage | null>(null);
  return (
    <div className={styles.picker}>
      <Input
        dir="auto"
        type="search"
        aria-label={t`Words of the passage`}
        placeholder={t`Words of the passage, its title or heading`}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Loaded
        query={query}
        label={t`the passages`}
        empty={({ pages }) =>
          pages.every((page) => page.items.length === 0) ? (
            <p className="quiet">
              {text.trim()
                ? t`The run has read no passage with these words.`
                : t`The run has read no passage that is still stored.`}
            </p>
          ) : null
        }
      >
        {({ pages }) => (
          <ul className={styles.passages}>
            {pages
              .flatMap(({ items }) => items)
              .map((passage) => (
                <li key={passage.id}>
                  <button
                    type="button"
                    aria-expanded={chosen?.id === passage.id}
                    className={styles.passage}
                    onClick={() => setChosen(chosen?.id === passage.id ? null : passage)}
                  >
                    <b dir="auto">{passage.title}</b>
                    <span dir="auto" className="quiet">
                      {[passage.id, passage.heading, passage.name].filter(Boolean).join(" · ")}
                    </span>
                    {chosen?.id !== passage.id && (
                      <span dir="auto" className={styles.excerpt}>
                        {passage.text}
                      </span>
                    )}
                  </button>
                  {chosen?.id === passage.id && <Words passage={passage} onCite={onCite} />}
                </li>
              ))}
          </ul>
        )}
      </Loaded>
      <LoadMore query={query} text={t`More passages`} />
    </div>
  );
}

/** The sentences of a passage. Those from the first to the last chosen one are cited. */
function Words({ passage, onCite }: { passage: EvidencePassage; onCite(citation: NewCitation): void }) {
  const sentences = useMemo(() => splitIntoSentences(passage.text), [passage.text]);
  const [range, setRange] = useState<readonly [number, number] | null>(sentences.length === 1 ? [0, 0] : null);
  const toggle = (at: number) => setRange(extendRange(range, at));
  const quote = range
    ? sentences
        .slice(range[0], range[1] + 1)
        .join("")
        .trim()
    : "";
  return (
    <div className={styles.words}>
      <p className="quiet">
        <Trans>Choose the sentences that support yours. They are cited as they are stored.</Trans>
      </p>
      <p dir="auto" className={styles.text}>
        {sentences.map((sentence, at) => (
          <button
            // biome-ignore lint/suspicious/noArrayIndexKey: the sentences of a stored text never change
            key={at}
            type="button"
            aria-pressed={range !== null && at >= range[0] && at <= range[1]}
            onClick={() => toggle(at)}
          >
            {sentence}
          </button>
        ))}
      </p>
      <Button
        kind="primary"
        disabled={!quote}
        onClick={() => onCite({ kind: "new", passage: passage.passage, quote, title: passage.title })}
      >
        <Trans>Cite these words</Trans>
      </Button>
    </div>
  );
}

/** Return the range with a sentence added, or without it if it is at an end. */
export function extendRange(range: readonly [number, number] | null, at: number): readonly [number, number] | null {
  if (range === null) return [at, at];
  const [first, last] = range;
  if (first === last && at === first) return null;
  if (at === first) return [first + 1, last];
  if (at === last) return [first, last - 1];
  return [Math.min(first, at), Math.max(last, at)];
}
