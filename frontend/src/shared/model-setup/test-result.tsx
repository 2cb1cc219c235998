import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ProviderTest } from "../api/providers";
import { joinParts } from "../format/lists";
import { formatCount, formatDuration, formatUsd } from "../format/numbers";
import { Badge, type Tone } from "../ui/badge";
import { useNow } from "../ui/hooks";
import styles from "./model-setup.module.css";
import { adviceFor, answers, CAPABILITY_LABELS, type Capability, OUTCOME_LABELS } from "./setup-text";

const TONES: Record<Capability["outcome"], Tone> = {
  works: "moss",
  fails: "coral",
  unknown: "neutral",
  "not tested": "neutral",
};

/** What a test showed, what it took, and what to do about a failure. */
export function TestResult({ test }: { test: ProviderTest }) {
  const isAnswering = answers(test);
  const advice = adviceFor(test);
  const hasGap = test.capabilities.some(({ outcome }) => outcome === "fails");
  const cost = test.priced ? formatUsd(test.cost_usd) : t`price unknown`;
  return (
    <div className={styles.result}>
      <p className={styles.resultHead}>
        <Badge tone={isAnswering ? "moss" : "coral"}>
          {isAnswering ? t`The model answers` : t`The model does not answer`}
        </Badge>
        <span className="num">
          {joinParts([test.model, formatDuration(test.seconds), t`${formatCount(test.tokens)} tokens`, cost])}
        </span>
      </p>
      {!isAnswering && (
        <div className="notice coral" role="alert">
          <p dir="auto">{test.capabilities[0]?.detail}</p>
          {advice && <p>{i18n._(advice)}</p>}
        </div>
      )}
      {isAnswering && hasGap && (
        <p className="quiet">
          <Trans>A model that lacks one of these can still be used: it is asked in a form that it follows.</Trans>
        </p>
      )}
      {isAnswering && (
        <ul className={styles.capabilities}>
          {test.capabilities.map((capability) => (
            <CapabilityRow key={capability.name} capability={capability} />
          ))}
        </ul>
      )}
    </div>
  );
}

function CapabilityRow({ capability: { name, outcome, detail } }: { capability: Capability }) {
  const label = CAPABILITY_LABELS[name];
  return (
    <li>
      <span>{label ? i18n._(label) : name}</span>
      <Badge tone={TONES[outcome]}>{i18n._(OUTCOME_LABELS[outcome])}</Badge>
      <span className="quiet" dir="auto">
        {detail}
      </span>
    </li>
  );
}

/** Shown while a test runs: what is tried, and for how long. */
export function TestProgress({ model, startedAt }: { model: string; startedAt: number }) {
  const now = useNow(1_000);
  return (
    <p role="status" className="quiet">
      <Trans>
        Testing {model} with four short calls…{" "}
        <span className="num">{formatDuration(Math.max(0, (now - startedAt) / 1000))}</span>
      </Trans>
    </p>
  );
}
