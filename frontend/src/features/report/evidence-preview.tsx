import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { stepQuery } from "@/shared/api/runs";
import { findSeqs } from "@/shared/minimap/marks";
import { Loaded } from "@/shared/ui/loaded";
import "./evidence-preview.css";

/** Maximum number of findings shown. */
const MAX_FINDINGS = 4;

interface EvidencePreviewProps {
  runId: string;
  marks: string;
  onPick(seq: number): void;
}

/** The latest findings of a run without a report, newest first. Renders nothing if there are none. */
export function EvidencePreview({ runId, marks, onPick }: EvidencePreviewProps) {
  const seqs = findSeqs(marks, ["m"]).slice(-MAX_FINDINGS).reverse();
  if (seqs.length === 0) return null;
  return (
    <section aria-label={t`Findings so far`}>
      <h2 className="label">
        <Trans>Findings so far</Trans>
      </h2>
      <ol className="evidence-preview">
        {seqs.map((seq) => (
          <li key={seq}>
            <Finding runId={runId} seq={seq} onPick={onPick} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Finding({ runId, seq, onPick }: { runId: string; seq: number; onPick(seq: number): void }) {
  const step = useQuery(stepQuery(runId, seq));
  return (
    <Loaded query={step} label={t`step ${seq}`}>
      {({ title, detail, payload }) => (
        <button type="button" onClick={() => onPick(seq)}>
          <span dir="auto" className="evidence-preview-goal">
            {title}
          </span>
          <span dir="auto" className="evidence-preview-text">
            {findingText(payload) || detail}
          </span>
          <span className="num quiet">
            <Trans>step {seq}</Trans>
          </span>
        </button>
      )}
    </Loaded>
  );
}

function findingText(payload: Record<string, unknown>): string {
  return typeof payload.finding === "string" ? payload.finding : "";
}
