import { useQuery } from "@tanstack/react-query";
import { stepQuery } from "@/shared/api/runs";
import { seqsWith } from "@/shared/horizon/marks";
import { Loaded } from "@/shared/ui/loaded";
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
  if (seqs.length === 0) return null;
  return (
    <section aria-label="Found so far">
      <h2 className="label">Found so far</h2>
      <ol className="found">
        {seqs.map((seq) => (
          <li key={seq}>
            <Finding run={run} seq={seq} onPick={onPick} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Finding({ run, seq, onPick }: { run: string; seq: number; onPick(seq: number): void }) {
  const step = useQuery(stepQuery(run, seq));
  return (
    <Loaded query={step} what={`step ${seq}`}>
      {({ title, detail, payload }) => (
        <button type="button" onClick={() => onPick(seq)}>
          <span className="found-goal">{title}</span>
          <span className="found-text">{findingOf(payload) || detail}</span>
          <span className="num quiet">step {seq}</span>
        </button>
      )}
    </Loaded>
  );
}

function findingOf(payload: Record<string, unknown>): string {
  return typeof payload.finding === "string" ? payload.finding : "";
}
