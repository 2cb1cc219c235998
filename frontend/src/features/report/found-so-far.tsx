import { useQueries } from "@tanstack/react-query";
import { stepQuery } from "@/shared/api/runs";
import { seqsWith } from "@/shared/horizon/marks";
import "./found-so-far.css";

/** How many of the latest records are shown. */
const LATEST = 4;

interface FoundSoFarProps {
  run: string;
  marks: string;
  onPick(seq: number): void;
}

/** The latest findings of a run that has written nothing yet, newest first. Nothing while there are none. */
export function FoundSoFar({ run, marks, onPick }: FoundSoFarProps) {
  const seqs = seqsWith(marks, ["m"]).slice(-LATEST).reverse();
  const steps = useQueries({ queries: seqs.map((seq) => stepQuery(run, seq)) });
  if (seqs.length === 0) return null;
  return (
    <section aria-label="Found so far">
      <h2 className="label">Found so far</h2>
      <ol className="found">
        {steps.map(({ data }, at) => (
          <li key={seqs[at]}>
            {data && (
              <button type="button" onClick={() => onPick(data.seq)}>
                <span className="found-goal">{data.title}</span>
                <span className="found-text">{findingOf(data.payload) || data.detail}</span>
                <span className="num quiet">step {data.seq}</span>
              </button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function findingOf(payload: Record<string, unknown>): string {
  return typeof payload.finding === "string" ? payload.finding : "";
}
