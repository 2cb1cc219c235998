import { useQuery } from "@tanstack/react-query";
import { diffWordsWithSpace } from "diff";
import { useMemo, useState } from "react";
import { versionsQuery } from "@/shared/api/flow";
import { type RunDetail, stepQuery } from "@/shared/api/runs";
import { ProblemNote } from "@/shared/ui/problem-note";

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
  const [chosen, setChosen] = useState<number | null>(null);
  const [changes, setChanges] = useState(true);
  const count = versions.data?.length ?? 0;
  const at = Math.min(chosen ?? count, count);
  const seq = versions.data?.[at - 1] ?? 0;
  const before = versions.data?.[at - 2] ?? 0;
  return (
    <section className="flow" aria-label="Report versions">
      <ProblemNote error={versions.error} onRetry={() => versions.refetch()} />
      {versions.isPending && <p className="quiet">Loading the versions…</p>}
      {versions.data && count === 0 && <p className="quiet">Its report appears here after its first round.</p>}
      {count > 0 && (
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
      )}
      {seq > 0 && <Version run={run.id} seq={seq} before={changes ? before : 0} />}
    </section>
  );
}

function Version({ run, seq, before }: { run: string; seq: number; before: number }) {
  const now = useQuery(stepQuery(run, seq));
  const was = useQuery({ ...stepQuery(run, before), enabled: before > 0 });
  const text = String(now.data?.payload.report ?? "");
  const old = before > 0 ? String(was.data?.payload.report ?? "") : "";
  const parts = useMemo(
    () => (old && text.length + old.length < COMPARED ? diffWordsWithSpace(old, text) : [{ value: text }]),
    [old, text],
  );
  return (
    <>
      <ProblemNote error={now.error} onRetry={() => now.refetch()} />
      {now.isPending && <p className="quiet">Loading…</p>}
      <div className="version">
        {parts.map((part, nth) => (
          // Parts of one comparison never change their order.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <Part key={nth} {...part} />
        ))}
      </div>
    </>
  );
}

function Part({ value, added, removed }: { value: string; added?: boolean; removed?: boolean }) {
  if (added) return <ins>{value}</ins>;
  return removed ? <del>{value}</del> : <span>{value}</span>;
}
