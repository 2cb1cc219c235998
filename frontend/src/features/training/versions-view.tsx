import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Evaluation, evaluationsQuery, type Version } from "@/shared/api/training";
import { formatAgo, formatCount, shortHash } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { PromptLibraryView } from "./prompt-library-view";
import { formatPercent, shortId, versionStateLabel } from "./training-labels";
import { VersionActions } from "./version-actions";

/** Evaluations of all versions of a policy. */
type Evaluations = Loadable<{ items: Evaluation[] }>;

interface VersionsViewProps {
  name: string;
  /** Versions of all policies, newest first. */
  all: readonly Version[];
  onJob(id: string): void;
}

/** Versions of a policy, newest first, with lineage, evaluations and state. */
export function VersionsView({ name, all, onJob }: VersionsViewProps) {
  const evaluations = useQuery(evaluationsQuery(name));
  const versions = all.filter((version) => version.name === name);
  const active = versions.find(({ state }) => state === "active");
  return (
    <article className="versions" aria-label={t`Versions of ${name}`}>
      <header className="job-head">
        <h1>{name}</h1>
        <p className="job-meta num">
          {plural(versions.length, { one: "# version", other: "# versions" })} ·{" "}
          {active
            ? t`runs that name ${name} without a version use version ${active.version}`
            : t`no version is active, so runs must name one`}
        </p>
      </header>
      <ol>
        {versions.map((version) => (
          <VersionRow
            key={version.id}
            version={version}
            parent={all.find(({ id }) => id === version.parent_id)}
            active={active}
            evaluations={evaluations}
            onJob={onJob}
          />
        ))}
      </ol>
    </article>
  );
}

interface VersionRowProps {
  version: Version;
  parent: Version | undefined;
  active: Version | undefined;
  evaluations: Evaluations;
  onJob(id: string): void;
}

function VersionRow({ version, parent, active, evaluations, onJob }: VersionRowProps) {
  const now = useNow(30_000);
  const [open, setOpen] = useState(false);
  const { label, tone } = versionStateLabel(version);
  return (
    <li className="version-row">
      <div className="version-head">
        <b className="num">
          {version.name}@{version.version}
        </b>
        <span className={`pill ${tone}`}>
          <i />
          {label}
        </span>
        <span className="version-acts">
          <VersionActions version={version} active={active} />
        </span>
      </div>
      <p className="version-from quiet num">
        <Lineage version={version} parent={parent} onJob={onJob} />
        <span>{version.kind}</span>
        <span className="mono" title={version.sha256}>
          {shortHash(version.sha256)}
        </span>
        <span>{formatAgo(version.created_at, now)}</span>
      </p>
      <VersionEvaluations version={version} evaluations={evaluations} />
      {version.kind === "prompt_library" && (
        <details className="prompt-library-details" onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>
            <Trans>Show text</Trans>
          </summary>
          {open && <PromptLibraryView versionId={version.id} />}
        </details>
      )}
    </li>
  );
}

/** Evaluations of a version, or the command that evaluates it. */
export function VersionEvaluations({ version, evaluations }: Pick<VersionRowProps, "version" | "evaluations">) {
  return (
    <Loaded query={evaluations} label={t`the evaluations`}>
      {({ items }) => (
        <EvaluationList version={version} own={items.filter(({ policy_id }) => policy_id === version.id)} />
      )}
    </Loaded>
  );
}

function EvaluationList({ version, own: evaluations }: { version: Version; own: readonly Evaluation[] }) {
  if (evaluations.length === 0) {
    return (
      <p className="quiet">
        <Trans>Not evaluated:</Trans>{" "}
        <span className="mono">offing policy evaluate {`${version.name}@${version.version}`}</span>
      </p>
    );
  }
  return evaluations.map((evaluation) => <EvaluationScore key={evaluation.id} evaluation={evaluation} />);
}

function Lineage({ version, parent, onJob }: Pick<VersionRowProps, "version" | "parent" | "onJob">) {
  const { job, steps, rollouts, compared } = version.lineage;
  const from = parent ? `${parent.name}@${parent.version}` : "";
  if (typeof job !== "string") return <span>{from ? t`on ${from}` : t`registered from files`}</span>;
  return (
    <span>
      {from ? (
        <Trans>
          from {from} by{" "}
          <button type="button" className="linkish" onClick={() => onJob(job)}>
            job {shortId(job)}
          </button>
        </Trans>
      ) : (
        <button type="button" className="linkish" onClick={() => onJob(job)}>
          <Trans>job {shortId(job)}</Trans>
        </button>
      )}
      {typeof steps === "number" && plural(steps, { one: ", # step", other: ", # steps" })}
      {typeof rollouts === "number" && plural(rollouts, { one: " on # rollout", other: " on # rollouts" })}
      {typeof compared === "number" && plural(compared, { one: ", # comparison", other: ", # comparisons" })}
    </span>
  );
}

/** Mean reward with its interval, on a line from 0 to 1, extended if a value lies outside. */
function EvaluationScore({ evaluation }: { evaluation: Evaluation }) {
  const { reward, low, high, dataset, mode, tasks, violated_fraction: violated, turns } = evaluation;
  return (
    <div className="score num">
      <Interval mean={reward} low={low} high={high} />
      <span>
        <b>{reward === null ? t`not scored` : reward.toFixed(3)}</b>
        {low !== null && high !== null && t` (${low.toFixed(3)} to ${high.toFixed(3)})`}
      </span>
      <span className="quiet">
        {dataset}, {mode}, {plural(tasks, { one: "# task", other: "# tasks" })}
        {turns !== null && t`, ${formatCount(Math.round(turns * 10) / 10)} turns each`}
        {violated !== null && violated > 0 && t`, ${formatPercent(violated)} violated a rule`}
      </span>
    </div>
  );
}

const WIDTH_PX = 120;

function Interval({ mean, low, high }: { mean: number | null; low: number | null; high: number | null }) {
  const values = [0, 1, mean, low, high].filter((value) => value !== null);
  const [from, to] = [Math.min(...values), Math.max(...values)];
  const x = (value: number) => 4 + ((value - from) / (to - from)) * (WIDTH_PX - 8);
  return (
    <svg width={WIDTH_PX} height="14" aria-hidden="true">
      <path className="curve-base" d={`M4 7H${WIDTH_PX - 4}M${x(0)} 4V10M${x(1)} 4V10`} />
      {low !== null && high !== null && <path className="score-range" d={`M${x(low)} 7H${x(high)}`} />}
      {mean !== null && <circle className="curve-dot" cx={x(mean)} cy="7" r="3.5" />}
    </svg>
  );
}
