import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Evaluation, evaluationsQuery, type Version } from "@/shared/api/training";
import { ago, count, counted, shortHash } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { LibraryTextView } from "./library-text";
import { percent, shortId, versionWording } from "./training-words";
import { VersionActions } from "./version-actions";

/** Of all versions of a name. */
type Evaluations = Loadable<{ items: Evaluation[] }>;

interface VersionsViewProps {
  name: string;
  /** Of every name, newest first. */
  all: readonly Version[];
  onJob(id: string): void;
}

/** The versions of a name, newest first: where each comes from, how it was evaluated, and which new runs get. */
export function VersionsView({ name, all, onJob }: VersionsViewProps) {
  const evaluations = useQuery(evaluationsQuery(name));
  const versions = all.filter((version) => version.name === name);
  const active = versions.find(({ state }) => state === "active");
  return (
    <article className="versions" aria-label={`Versions of ${name}`}>
      <header className="job-head">
        <h1>{name}</h1>
        <p className="job-meta num">
          {counted(versions.length, "version")} ·{" "}
          {active
            ? `runs that name ${name} without a version get version ${active.version}`
            : "none is active, so runs must name a version"}
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
  const { word, tone } = versionWording(version);
  return (
    <li className="version-row">
      <div className="version-head">
        <b className="num">
          {version.name}@{version.version}
        </b>
        <span className={`pill ${tone}`}>
          <i />
          {word}
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
        <span>{ago(version.created_at, now)}</span>
      </p>
      <Scores version={version} evaluations={evaluations} />
      {version.kind === "prompts" && (
        <details className="library-fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>What it says</summary>
          {open && <LibraryTextView id={version.id} />}
        </details>
      )}
    </li>
  );
}

/** Its evaluations, or how to make one. */
export function Scores({ version, evaluations }: Pick<VersionRowProps, "version" | "evaluations">) {
  return (
    <Loaded query={evaluations} what="its evaluations">
      {({ items }) => <OwnScores version={version} own={items.filter(({ policy_id }) => policy_id === version.id)} />}
    </Loaded>
  );
}

function OwnScores({ version, own }: { version: Version; own: readonly Evaluation[] }) {
  if (own.length === 0) {
    return (
      <p className="quiet">
        Not evaluated: <span className="mono">offing policy evaluate {`${version.name}@${version.version}`}</span>
      </p>
    );
  }
  return own.map((evaluation) => <Score key={evaluation.id} evaluation={evaluation} />);
}

function Lineage({ version, parent, onJob }: Pick<VersionRowProps, "version" | "parent" | "onJob">) {
  const { job, steps, rollouts, compared } = version.lineage;
  const from = parent ? `${parent.name}@${parent.version}` : "";
  if (typeof job !== "string") return <span>{from ? `on ${from}` : "registered from files"}</span>;
  return (
    <span>
      {from && `from ${from} by `}
      <button type="button" className="linkish" onClick={() => onJob(job)}>
        job {shortId(job)}
      </button>
      {typeof steps === "number" && `, ${counted(steps, "step")}`}
      {typeof rollouts === "number" && ` on ${counted(rollouts, "rollout")}`}
      {typeof compared === "number" && `, ${counted(compared, "comparison")}`}
    </span>
  );
}

/** Mean reward with its interval, on a line from 0 to 1, or as far as they reach beyond it. */
function Score({ evaluation }: { evaluation: Evaluation }) {
  const { reward, low, high, dataset, mode, tasks, violated, turns } = evaluation;
  return (
    <div className="score num">
      <Interval mean={reward} low={low} high={high} />
      <span>
        <b>{reward === null ? "not scored" : reward.toFixed(3)}</b>
        {low !== null && high !== null && ` (${low.toFixed(3)} to ${high.toFixed(3)})`}
      </span>
      <span className="quiet">
        {dataset}, {mode}, {counted(tasks, "task")}
        {turns !== null && `, ${count(Math.round(turns * 10) / 10)} turns each`}
        {violated !== null && violated > 0 && `, ${percent(violated)} broke a rule`}
      </span>
    </div>
  );
}

const WIDTH = 120;

function Interval({ mean, low, high }: { mean: number | null; low: number | null; high: number | null }) {
  const known = [0, 1, mean, low, high].filter((value) => value !== null);
  const [from, to] = [Math.min(...known), Math.max(...known)];
  const x = (value: number) => 4 + ((value - from) / (to - from)) * (WIDTH - 8);
  return (
    <svg width={WIDTH} height="14" aria-hidden="true">
      <path className="curve-base" d={`M4 7H${WIDTH - 4}M${x(0)} 4V10M${x(1)} 4V10`} />
      {low !== null && high !== null && <path className="score-range" d={`M${x(low)} 7H${x(high)}`} />}
      {mean !== null && <circle className="curve-dot" cx={x(mean)} cy="7" r="3.5" />}
    </svg>
  );
}
