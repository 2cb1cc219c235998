import type { Citation, Rating, Sentence } from "@/shared/api/reports";
import { CitationMarker } from "./citation-marker";
import { SentenceMenu } from "./rate";

interface SentenceViewProps {
  run: string;
  sentence: Sentence;
  citations: ReadonlyMap<number, Citation>;
  pinned: readonly number[];
  rating: Rating | undefined;
  onPin(number: number): void;
}

export function SentenceView({ run, sentence, citations, pinned, rating, onPin }: SentenceViewProps) {
  return (
    <span className="sentence" id={`sentence-${sentence.id}`}>
      <span
        className={sentence.supported ? undefined : "weak"}
        title={sentence.supported ? undefined : "Not supported yet"}
      >
        {sentence.text}
      </span>
      {sentence.citations.map((number) => {
        const citation = citations.get(number);
        return (
          citation && <CitationMarker key={number} citation={citation} pinned={pinned.includes(number)} onPin={onPin} />
        );
      })}
      <SentenceMenu run={run} sentence={sentence} rating={rating} />{" "}
    </span>
  );
}
