import type { Citation, Rating, Sentence } from "@/shared/api/reports";
import { CitationMarker } from "./citation-marker";
import { SentenceMenu } from "./ratings";

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
  return (
    <span className="sentence" id={`sentence-${sentence.id}`}>
      <span
        className={sentence.supported ? undefined : "unsupported"}
        title={sentence.supported ? undefined : "Unsupported sentence"}
      >
        {text ?? sentence.text}
      </span>
      {sentence.citations.map((number) => {
        const citation = citations.get(number);
        return (
          citation && <CitationMarker key={number} citation={citation} pinned={pinned.includes(number)} onPin={onPin} />
        );
      })}
      <SentenceMenu runId={runId} sentence={sentence} rating={rating} />{" "}
    </span>
  );
}
