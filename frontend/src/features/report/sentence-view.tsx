import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { Citation, Rating, Sentence } from "@/shared/api/reports";
import { CitationMarker } from "./citation-marker";
import { SentenceMenu } from "./ratings";
import type { AskAbout } from "./report-view";
import { sentenceMark } from "./sentence-marks";

interface SentenceViewProps {
  runId: string;
  version: number;
  sentence: Sentence;
  /** Text shown in place of the whole sentence, such as the last cell of a table row. */
  text?: string;
  citations: ReadonlyMap<number, Citation>;
  pinned: readonly number[];
  rating: Rating | undefined;
  onPin(number: number): void;
  onAsk?: AskAbout;
}

export function SentenceView(props: SentenceViewProps) {
  const { runId, version, sentence, text, citations, pinned, rating, onPin, onAsk } = props;
  const mark = sentenceMark(sentence);
  return (
    <span className="sentence" id={`sentence-${sentence.id}`} tabIndex={-1}>
      <span dir="auto" className={mark && !mark.isConclusion ? "unsupported" : undefined} title={mark?.reason}>
        {text ?? sentence.text}
      </span>
      {[...sentence.citations, ...sentence.passages].map((number) => {
        const citation = citations.get(number);
        return (
          citation && <CitationMarker key={number} citation={citation} pinned={pinned.includes(number)} onPin={onPin} />
        );
      })}
      {mark && (
        <small className="sentence-mark" title={mark.reason}>
          {mark.label}
          {mark.reason !== mark.label && <span className="visually-hidden">. {mark.reason}</span>}
        </small>
      )}
      {sentence.edited && (
        <small className="sentence-mark sentence-edited" title={t`A person wrote this sentence, or changed it.`}>
          <Trans>edited</Trans>
        </small>
      )}
      <SentenceMenu runId={runId} version={version} sentence={sentence} rating={rating} onAsk={onAsk} />{" "}
    </span>
  );
}
