import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { memo } from "react";
import { parseFiles } from "@/shared/api/files";
import { type Step, stepQuery } from "@/shared/api/runs";
import { formatDateTime, formatMs } from "@/shared/format/numbers";
import { stepLabel } from "@/shared/format/step-labels";
import { useLanguage } from "@/shared/language/language";
import { MARK_STYLES, markForStep } from "@/shared/minimap/marks";
import { Loaded } from "@/shared/ui/loaded";
import { RunFiles } from "@/shared/ui/run-files";
import { ForkHere } from "./fork-here";
import { PayloadView } from "./payload-view";
import { hasTwoLines, startsTurn } from "./row-height";
import { rowTexts } from "./row-texts";

interface StepRowProps {
  runId: string;
  seq: number;
  /** `undefined` means that the step is not loaded yet. Its row keeps its position. */
  step: Step | undefined;
  /** The turn of the step before it. `undefined` means that there is none, or that it is not loaded yet. */
  previousTurn: number | undefined;
  /** Text around a match of the search. Empty means none. */
  excerpt: string;
  selected: boolean;
  open: boolean;
  onToggle(seq: number): void;
}

/** A step of the timeline. It is rendered again only when it changes, not while others scroll past it. */
export const StepRow = memo(function StepRow(props: StepRowProps) {
  const { runId, seq, step, previousTurn, excerpt, selected, open, onToggle } = props;
  useLanguage();
  if (!step) return <div className="step-skeleton num quiet">{seq}</div>;
  const { title, detail } = rowTexts(step);
  return (
    <>
      {startsTurn(step, previousTurn) && (
        <h2 className="turn">
          <Trans>
            Turn <span className="num">{step.turn}</span>
          </Trans>
        </h2>
      )}
      <button
        type="button"
        className={selected ? "step selected" : "step"}
        data-lines={hasTwoLines(step) ? 2 : 1}
        aria-expanded={open}
        aria-current={selected ? "step" : undefined}
        onClick={() => onToggle(seq)}
      >
        <span className="step-seq num">{seq}</span>
        <StepKind step={step} />
        <span className="step-body">
          <span dir="auto" className="step-title">
            {title}
          </span>
          {detail && (
            <span dir="auto" className="step-detail">
              {detail}
            </span>
          )}
          {excerpt && excerpt !== detail && (
            <span dir="auto" className="step-excerpt">
              {excerpt}
            </span>
          )}
        </span>
        <span className="step-duration num">
          {step.ms !== null && step.ms > 0 && formatMs(step.ms)}
          {step.tokens > 0 && <span className="step-tokens">{t`${step.tokens} tok`}</span>}
        </span>
      </button>
      {open && <StepDetails runId={runId} seq={seq} />}
    </>
  );
});

function StepKind({ step }: { step: Step }) {
  const { color } = MARK_STYLES[markForStep(step)];
  return (
    <span className="step-kind" style={{ color: `var(${color === "--sun-mark" ? "--sun" : color})` }}>
      {stepLabel(step)}
    </span>
  );
}

function StepDetails({ runId, seq }: { runId: string; seq: number }) {
  const detail = useQuery(stepQuery(runId, seq));
  return (
    <div className="step-open">
      <Loaded query={detail} label={t`the step`}>
        {({ at, kind, payload }) => (
          <>
            <p className="quiet">{formatDateTime(at, "medium")}</p>
            <RunFiles runId={runId} files={parseFiles(payload)} />
            <PayloadView value={payload} />
            {kind !== "ended" && <ForkHere runId={runId} {...forkPoint(seq, kind, payload)} />}
          </>
        )}
      </Loaded>
    </div>
  );
}

/** A fork of a user message continues before it, with its text to change. A fork of any other step continues after it. */
function forkPoint(seq: number, kind: Step["kind"], payload: Record<string, unknown>) {
  const { text, plan } = payload;
  if (kind === "user_message" && typeof text === "string" && !plan && seq > 1) return { at: seq - 1, message: text };
  return { at: seq, message: "" };
}
