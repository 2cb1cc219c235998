import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { diffWordsWithSpace } from "diff";
import { useMemo, useState } from "react";
import { type RunDetail, stepQuery } from "@/shared/api/runs";
import { reportVersionsQuery, type StepWithPayload } from "@/shared/api/step-payloads";
import { combineQueries, Loaded } from "@/shared/ui/loaded";

interface ReportVersionsProps {
  run: RunDetail;
  active: boolean;
  onPick(seq: number): void;
}

/** Maximum total length of two versions for which a diff is shown. */
const MAX_DIFF_CHARS = 60_000;

/** The report of each turn, with its changes since the previous turn. */
export function ReportVersions({ run, active, onPick }: ReportVersionsProps) {
  const versions = useQuery(reportVersionsQuery(run.id, active));
  return (
    <section className="graph-state" aria-label={t`Report versions`}>
      <h2 className="label">
        <Trans>Report versions</Trans>
      </h2>
      <Loaded
        query={versions}
        label={t`the versions`}
        empty={(seqs) =>
          seqs.length === 0 ? (
            <p className="quiet">
              <Trans>The first version appears after the first turn.</Trans>
            </p>
          ) : null
        }
      >
        {(seqs) => <Versions run={run} seqs={seqs} onPick={onPick} />}
      </Loaded>
    </section>
  );
}

interface VersionsProps {
  run: RunDetail;
  /** Sequence numbers of the steps that contain the versions, oldest first. */
  seqs: readonly number[];
  onPick(seq: number): void;
}

function Versions({ run, seqs, onPick }: VersionsProps) {
  const [selectedVersion, setSelectedVersion] = useState<number | null>(null);
  const [showsChanges, setShowsChanges] = useState(true);
  const count = seqs.length;
  const at = Math.min(selectedVersion ?? count, count);
  const seq = seqs[at - 1] ?? 0;
  const previousSeq = seqs[at - 2] ?? 0;
  return (
    <>
      <div className="graph-state-head">
        <label>
          <Trans>
            Version <b className="num">{at}</b> of <span className="num">{count}</span>
          </Trans>
          <input
            type="range"
            min={1}
            max={count}
            value={at}
            onChange={(event) => setSelectedVersion(Number(event.target.value))}
          />
        </label>
        <label className="graph-state-check">
          <input type="checkbox" checked={showsChanges} onChange={(event) => setShowsChanges(event.target.checked)} />
          <Trans>Show changes</Trans>
        </label>
        <button type="button" className="btn small" onClick={() => onPick(seq)}>
          <Trans>Go to step</Trans>
        </button>
      </div>
      <Version runId={run.id} seq={seq} previousSeq={showsChanges ? previousSeq : 0} />
    </>
  );
}

function Version({ runId, seq, previousSeq }: { runId: string; seq: number; previousSeq: number }) {
  const current = useQuery(stepQuery(runId, seq));
  const previous = useQuery({ ...stepQuery(runId, previousSeq), enabled: previousSeq > 0 });
  return (
    <Loaded query={combineQueries({ now: current, was: previousSeq > 0 ? previous : current })} label={t`the version`}>
      {(both) => <VersionText text={reportText(both.now)} old={previousSeq > 0 ? reportText(both.was) : ""} />}
    </Loaded>
  );
}

function reportText(step: StepWithPayload): string {
  return String(step.payload.report ?? "");
}

/** Text of a version. If an older version is given, the changes since then are shown. */
function VersionText({ text, old }: { text: string; old: string }) {
  const parts = useMemo(
    () => (old && text.length + old.length < MAX_DIFF_CHARS ? diffWordsWithSpace(old, text) : [{ value: text }]),
    [old, text],
  );
  return (
    <div dir="auto" className="version">
      {parts.map((part, nth) => (
        // Parts of one diff never change their order.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <DiffPart key={nth} {...part} />
      ))}
    </div>
  );
}

function DiffPart({ value, added, removed }: { value: string; added?: boolean; removed?: boolean }) {
  if (added) return <ins>{value}</ins>;
  return removed ? <del>{value}</del> : <span>{value}</span>;
}
