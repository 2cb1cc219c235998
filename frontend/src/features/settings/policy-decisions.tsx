import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { SampleDecision } from "@/shared/api/settings";
import { Badge, type Tone } from "@/shared/ui/badge";
import { Table } from "@/shared/ui/table";
import styles from "./installation.module.css";

type Outcome = SampleDecision["before"];

const OUTCOMES: Record<Outcome["outcome"], ReturnType<typeof msg>> = {
  allow: msg`allow`,
  ask: msg`ask a person`,
  deny: msg`deny`,
  replace: msg`replace`,
  invalid: msg`not a valid call`,
};

const TONES: Record<Outcome["outcome"], Tone> = {
  allow: "moss",
  ask: "sun",
  deny: "coral",
  replace: "sea",
  invalid: "neutral",
};

/** What the policy decides about each sample call, before and after the run has read untrusted text. */
export function Decisions({ decisions }: { decisions: readonly SampleDecision[] }) {
  return (
    <>
      <Table
        caption={t`Decisions about the sample calls`}
        rows={decisions}
        rowKey={({ tool, args }) => `${tool} ${JSON.stringify(args)}`}
        columns={[
          {
            header: t`Call`,
            cell: ({ tool, args }) => (
              <span className={styles.code} dir="ltr">
                {tool} {JSON.stringify(args)}
              </span>
            ),
          },
          { header: t`At the start`, cell: ({ before }) => <Decision outcome={before} /> },
          { header: t`After untrusted text`, cell: ({ after }) => <Decision outcome={after} /> },
        ]}
      />
      <p className={styles.note}>
        <Trans>
          Limits of calls and bytes count as not used yet. Whether a call copies text from outside is only known in a
          run.
        </Trans>
      </p>
    </>
  );
}

function Decision({ outcome }: { outcome: Outcome }) {
  const { rule, reason, replacement, replacement_outcome: then } = outcome;
  return (
    <span className={styles.decision}>
      <Badge tone={TONES[outcome.outcome]}>{i18n._(OUTCOMES[outcome.outcome])}</Badge>
      {rule && <span className={styles.note}>{rule}</span>}
      {reason && (
        <span className={styles.note} dir="auto">
          {reason}
        </span>
      )}
      {replacement && (
        <span className={styles.code} dir="ltr">
          {replacement.tool} {JSON.stringify(replacement.args)}
        </span>
      )}
      {then && <Badge tone={TONES[then]}>{i18n._(OUTCOMES[then])}</Badge>}
    </span>
  );
}
