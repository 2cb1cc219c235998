import type { Citation, Rating, Sentence } from "@/shared/api/reports";
import { CitationMarker } from "./citation-marker";
import { SentenceMenu } from "./ratings";
import { sentenceMark } from "./unsupported";

interface SentenceViewProps {
  runId: string;
  sentence: Sentence;
  /** Text shown in place of the whole sentence, such as the last cell of a table row. */
  text?: string;
  citations: ReadonlyMap<number, Citation>;
  pinned: readonly number[];
  rating: Rating | undefined;
  onPin(number: number): void;
}

export function SentenceView({ runId, sentence, text, citations, pinned, rating, onPin }: SentenceViewProps) {
  const mark = sentenceMark(sentence);
  return (
    <span className="sentence" id={`sentence-${sentence.id}`}>
      <span dir="auto" className={mark ? "unsupported" : undefined} title={mark?.reason}>
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
          <span className="visually-hidden">. {mark.reason}</span>
        </small>
      )}
      <SentenceMenu runId={runId} sentence={sentence} rating={rating} />{" "}
    </span>
  );
}
