import { useQuery } from "@tanstack/react-query";
import { filesOf } from "@/shared/api/files";
import { type Step, stepQuery } from "@/shared/api/runs";
import { took } from "@/shared/format/numbers";
import { MARKS, markOf } from "@/shared/horizon/marks";
import { Loaded } from "@/shared/ui/loaded";
import { RunFiles } from "@/shared/ui/run-files";
import { ForkHere } from "./fork-here";
import { PayloadView } from "./payload-view";

interface StepRowProps {
  run: string;
  seq: number;
  /** undefined: not fetched yet; its place is kept. */
  step: Step | undefined;
  before: Step | undefined;
  selected: boolean;
  open: boolean;
  onToggle(): void;
}

export function StepRow({ run, seq, step, before, selected, open, onToggle }: StepRowProps) {
  if (!step) return <div className="step-skeleton num quiet">{seq}</div>;
  const newTurn = step.turn > 0 && step.turn !== before?.turn;
  return (
    <>
      {newTurn && (
        <h2 className="turn">
          Turn <span className="num">{step.turn}</span>
        </h2>
      )}
      <button
        type="button"
        className={selected ? "step selected" : "step"}
        aria-expanded={open}
        aria-current={selected ? "step" : undefined}
        onClick={onToggle}
      >
        <span className="step-seq num">{seq}</span>
        <StepKind step={step} />
        <span className="step-body">
          <span className="step-title">{step.title}</span>
          {step.detail && <span className="step-detail">{step.detail}</span>}
        </span>
        <span className="step-took num">
          {step.ms !== null && step.ms > 0 && took(step.ms)}
          {step.tokens > 0 && <span className="step-tokens">{step.tokens} tok</span>}
        </span>
      </button>
      {open && <StepDetails run={run} seq={seq} />}
    </>
  );
}

function StepKind({ step }: { step: Step }) {
  const { color } = MARKS[markOf(step)];
  const word = step.ok ? step.label || step.kind : "failed";
  return (
    <span className="step-kind" style={{ color: `var(${color === "--sun-mark" ? "--sun" : color})` }}>
      {word}
    </span>
  );
}

function StepDetails({ run, seq }: { run: string; seq: number }) {
  const detail = useQuery(stepQuery(run, seq));
  return (
    <div className="step-open">
      <Loaded query={detail} what="the step">
        {({ at, kind, payload }) => (
          <>
            <p className="quiet">{new Date(at).toLocaleString("en", { timeStyle: "medium", dateStyle: "medium" })}</p>
            <RunFiles run={run} files={filesOf(payload)} />
            <PayloadView value={payload} />
            {kind !== "ended" && <ForkHere run={run} seq={seq} />}
          </>
        )}
      </Loaded>
    </div>
  );
}
