import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import type { Citation, Report, Sentence, Verdict } from "@/shared/api/reports";
import { positionText } from "@/shared/texts/position-texts";
import { reportText } from "@/shared/texts/report-texts";
import { Badge } from "@/shared/ui/badge";
import { Panel } from "@/shared/ui/panel";
import { Table } from "@/shared/ui/table";
import { CitationMarker } from "./citation-marker";
import styles from "./claim-table.module.css";
import { splitCells } from "./report-blocks";
import { listClaims, listPremises, sentenceReasons, VERDICT_LABELS, VERDICTS } from "./sentence-marks";

interface ClaimsProps {
  report: Report;
  pinned: readonly number[];
  onPin(number: number): void;
  /** Shows the sentence in the text. */
  onJump(sentenceId: string): void;
}

/** Each sentence that cites something and each conclusion with its verdict and sources, and where sources disagree. */
export function ClaimsView({ report, pinned, onPin, onJump }: ClaimsProps) {
  const [shown, setShown] = useState<Verdict | null>(null);
  const claims = listClaims(report);
  const citations = new Map(report.citations.map((citation) => [citation.number, citation]));
  const rows = claims.filter((claim) => shown === null || claim.verdict === shown);
  return (
    <div className={styles.view}>
      <Panel title={t`Claims`}>
        {claims.length === 0 ? (
          <p className="quiet">
            <Trans>No sentence of this report cites a source, so none has a verdict.</Trans>
          </p>
        ) : (
          <>
            <VerdictFilter claims={claims} shown={shown} onShow={setShown} />
            <Table
              caption={t`Claims of the report`}
              rows={rows}
              rowKey={(claim) => claim.id}
              columns={[
                { header: t`Verdict`, cell: (claim) => <VerdictBadge verdict={claim.verdict} /> },
                {
                  header: t`Sentence`,
                  cell: (claim) => (
                    <>
                      <button type="button" dir="auto" className={styles.sentence} onClick={() => onJump(claim.id)}>
                        {claimText(claim)}
                      </button>
                      <Reason report={report} claim={claim} onJump={onJump} />
                    </>
                  ),
                },
                {
                  header: t`Sources`,
                  cell: (claim) =>
                    listNumbers(report, claim).map((number) => (
                      <Marker key={number} citation={citations.get(number)} pinned={pinned} onPin={onPin} />
                    )),
                },
                { header: t`Judged by`, cell: (claim) => (claim.judgment ? t`rules and checker` : t`rules`) },
              ]}
            />
          </>
        )}
        {report.judged_by && <p className="quiet">{reportText(report, "judged_by")}</p>}
      </Panel>
      <Panel title={t`Conflicts between sources`}>
        {report.conflicts.map((conflict) => (
          <article key={conflict.citations.join()} className={styles.conflict}>
            <h3 dir="auto">{conflict.matter || t`Two quotes say the same with another number or date.`}</h3>
            <div className={styles.sides}>
              {conflict.citations.map((number) => (
                <Side key={number} citation={citations.get(number)} pinned={pinned} onPin={onPin} />
              ))}
            </div>
            <p className="quiet">{conflict.found_by === "checker" ? t`Found by the checker` : t`Found by rules`}</p>
          </article>
        ))}
        {report.conflict_search ? (
          <p className="quiet">{reportText(report, "conflict_search")}</p>
        ) : (
          report.conflicts.length === 0 && (
            <p className="quiet">
              <Trans>Conflicts are looked for among the passages that a report cites.</Trans>
            </p>
          )
        )}
      </Panel>
    </div>
  );
}

/** The citations of a claim, or of the sentences that a conclusion follows from. */
function listNumbers(report: Report, claim: Sentence): number[] {
  const premises = claim.verdict === "conclusion" ? listPremises(report, claim) : [];
  return [...new Set([...claim.citations, ...claim.passages, ...premises.flatMap((one) => one.citations)])];
}

interface ReasonProps {
  report: Report;
  claim: Sentence;
  onJump(sentenceId: string): void;
}

/** Why a claim has its verdict. Stands below its sentence, since a column of its own would be too narrow. */
function Reason(props: ReasonProps) {
  const { claim } = props;
  if (claim.verdict === "conclusion") return <Premises {...props} />;
  const text = sentenceReasons(claim).join("; ") || claim.judgment?.reason;
  return text ? (
    <span dir="auto" className={styles.reason}>
      {text}
    </span>
  ) : null;
}

/** The sentences that a conclusion follows from. */
function Premises({ report, claim, onJump }: ReasonProps) {
  return (
    <span className={styles.reason}>
      <Trans>Follows from</Trans>
      {listPremises(report, claim).map((premise) => (
        <button key={premise.id} type="button" dir="auto" className={styles.premise} onClick={() => onJump(premise.id)}>
          {quote(claimText(premise))}
        </button>
      ))}
    </span>
  );
}

/** Put a text in quotation marks, unless it begins with one. */
function quote(text: string): string {
  return /^["“]/.test(text) ? text : `“${text}”`;
}

/** The words of a claim. Cells of a table row are separated. */
function claimText({ layout, text }: Sentence): string {
  return layout === "row" || layout === "header" ? splitCells(text).join(" · ") : text;
}

export function VerdictBadge({ verdict }: { verdict: Sentence["verdict"] }) {
  if (verdict === null) return null;
  const { label, tone } = VERDICT_LABELS[verdict];
  return <Badge tone={tone}>{i18n._(label)}</Badge>;
}

interface FilterProps {
  claims: readonly Sentence[];
  shown: Verdict | null;
  onShow(verdict: Verdict | null): void;
}

function VerdictFilter({ claims, shown, onShow }: FilterProps) {
  return (
    <fieldset className={styles.filter}>
      <legend className="visually-hidden">
        <Trans>Show claims with a verdict</Trans>
      </legend>
      <button type="button" className="btn small" aria-pressed={shown === null} onClick={() => onShow(null)}>
        <Trans>
          All <span className="num">{claims.length}</span>
        </Trans>
      </button>
      {VERDICTS.map((verdict) => {
        const count = claims.filter((claim) => claim.verdict === verdict).length;
        return (
          <button
            key={verdict}
            type="button"
            className="btn small"
            aria-pressed={shown === verdict}
            disabled={count === 0}
            onClick={() => onShow(shown === verdict ? null : verdict)}
          >
            {i18n._(VERDICT_LABELS[verdict].label)} <span className="num">{count}</span>
          </button>
        );
      })}
    </fieldset>
  );
}

interface CitedProps {
  citation: Citation | undefined;
  pinned: readonly number[];
  onPin(number: number): void;
}

function Marker({ citation, pinned, onPin }: CitedProps) {
  if (!citation) return null;
  return <CitationMarker citation={citation} pinned={pinned.includes(citation.number)} onPin={onPin} />;
}

/** What one of two sources says. */
function Side({ citation, pinned, onPin }: CitedProps) {
  if (!citation) return null;
  return (
    <figure className={styles.side}>
      <blockquote dir="auto">{citation.quote}</blockquote>
      <figcaption>
        <Marker citation={citation} pinned={pinned} onPin={onPin} />{" "}
        <span dir="auto">
          {citation.title}
          {citation.position && `, ${positionText(citation)}`}
        </span>
      </figcaption>
    </figure>
  );
}
