import { useQuery } from "@tanstack/react-query";
import { diffWordsWithSpace } from "diff";
import { useMemo, useState } from "react";
import { versionsQuery, type WholeStep } from "@/shared/api/flow";
import { type RunDetail, stepQuery } from "@/shared/api/runs";
import { Loaded, together } from "@/shared/ui/loaded";

interface ReportVersionsProps {
  run: RunDetail;
  active: boolean;
  onPick(seq: number): void;
}

/** Characters of two versions together; longer ones are shown without what changed. */
const COMPARED = 60_000;

/** The report as the agent rewrote it round by round, with what each round changed. */
export function ReportVersions({ run, active, onPick }: ReportVersionsProps) {
  const versions = useQuery(versionsQuery(run.id, active));
  return (
    <section className="flow" aria-label="Report versions">
      <Loaded
        query={versions}
        what="the versions"
        empty={(seqs) =>
          seqs.length === 0 ? <p className="quiet">Its report appears here after its first round.</p> : null
        }
      >
        {(seqs) => <Versions run={run} seqs={seqs} onPick={onPick} />}
      </Loaded>
    </section>
  );
}

interface VersionsProps {
  run: RunDetail;
  /** Steps under which versions stand, oldest first. */
  seqs: readonly number[];
  onPick(seq: number): void;
}

function Versions({ run, seqs, onPick }: VersionsProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const [changes, setChanges] = useState(true);
  const count = seqs.length;
  const at = Math.min(chosen ?? count, count);
  const seq = seqs[at - 1] ?? 0;
  const before = seqs[at - 2] ?? 0;
  return (
    <>
      <div className="flow-head">
        <label>
          Version <b className="num">{at}</b> of <span className="num">{count}</span>
          <input
            type="range"
            min={1}
            max={count}
            value={at}
            onChange={(event) => setChosen(Number(event.target.value))}
          />
        </label>
        <label className="flow-check">
          <input type="checkbox" checked={changes} onChange={(event) => setChanges(event.target.checked)} />
          Show what changed
        </label>
        <button type="button" className="btn small" onClick={() => onPick(seq)}>
          Its step
        </button>
      </div>
      <Version run={run.id} seq={seq} before={changes ? before : 0} />
    </>
  );
}

function Version({ run, seq, before }: { run: string; seq: number; before: number }) {
  const now = useQuery(stepQuery(run, seq));
  const was = useQuery({ ...stepQuery(run, before), enabled: before > 0 });
  return (
    <Loaded query={together({ now, was: before > 0 ? was : now })} what="the version">
      {(both) => <Text text={reportOf(both.now)} old={before > 0 ? reportOf(both.was) : ""} />}
    </Loaded>
  );
}

function reportOf(step: WholeStep): string {
  return String(step.payload.report ?? "");
}

/** A version; where an older one is given, with what changed since. */
function Text({ text, old }: { text: string; old: string }) {
  const parts = useMemo(
    () => (old && text.length + old.length < COMPARED ? diffWordsWithSpace(old, text) : [{ value: text }]),
    [old, text],
  );
  return (
    <div className="version">
      {parts.map((part, nth) => (
        // Parts of one comparison never change their order.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <Part key={nth} {...part} />
      ))}
    </div>
  );
}

function Part({ value, added, removed }: { value: string; added?: boolean; removed?: boolean }) {
  if (added) return <ins>{value}</ins>;
  return removed ? <del>{value}</del> : <span>{value}</span>;
}
