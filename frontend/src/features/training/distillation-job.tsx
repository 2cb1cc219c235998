import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import {
  distillationMetricsQuery,
  evaluationsQuery,
  isLive,
  type JobDetail,
  jobEventsQuery,
  type Version,
  versionsQuery,
} from "@/shared/api/training";
import { formatCount } from "@/shared/format/numbers";
import { Loaded } from "@/shared/ui/loaded";
import { Events, Ledger } from "./job-record";
import { PromptLibraryView } from "./prompt-library-view";
import { costText, versionStateLabel } from "./training-labels";
import { VersionActions } from "./version-actions";
import { VersionEvaluations } from "./versions-view";
import "./distillation.css";

/** Progress and cost of a distillation job. */
export function DistillationMetrics({ job }: { job: JobDetail }) {
  const metricsResult = useQuery(distillationMetricsQuery(job));
  const metrics = metricsResult.data;
  // If the metrics cannot be loaded, the details below show the error.
  if (!metrics || metricsResult.isLoadingError) return null;
  return (
    <>
      <span>
        <b>{formatCount(metrics.get("compared") ?? 0)}</b>
        {metrics.has("total") &&
          plural(metrics.get("total") ?? 0, { one: " of # comparison", other: " of # comparisons" })}
      </span>
      <span>
        <b>{costText(metrics)}</b>
      </span>
    </>
  );
}

/** Result of a distillation job, and the runs that it used. */
export function DistillationDetails({ job }: { job: JobDetail }) {
  const metrics = useQuery(distillationMetricsQuery(job));
  const events = useQuery(jobEventsQuery(job));
  const versions = useQuery(versionsQuery);
  return (
    <>
      <Loaded query={metrics} label={t`the metrics`}>
        {(loaded) => isLive(job) && <ComparisonProgress metrics={loaded} />}
      </Loaded>
      {isLive(job) && (
        <p className="quiet">
          <Trans>You can close this page. Finished comparisons are saved even if the worker stops.</Trans>
        </p>
      )}
      {job.produced_version_id !== null && (
        <Loaded query={versions} label={t`the candidate`}>
          {({ items }) => {
            const candidate = items.find(({ id }) => id === job.produced_version_id);
            return candidate && <Candidate version={candidate} versions={items} />;
          }}
        </Loaded>
      )}
      <div className="job-parts">
        <Ledger job={job} />
        <Events events={events} />
      </div>
    </>
  );
}

function ComparisonProgress({ metrics }: { metrics: ReadonlyMap<string, number> }) {
  const total = metrics.get("total") ?? 0;
  if (total === 0) return null;
  return (
    <progress className="comparing" aria-label={t`Comparisons`} max={total} value={metrics.get("compared") ?? 0} />
  );
}

/** The candidate with its state, actions, evaluations and text. */
function Candidate({ version, versions }: { version: Version; versions: readonly Version[] }) {
  const evaluations = useQuery(evaluationsQuery(version.name));
  const active = versions.find(({ name, state }) => name === version.name && state === "active");
  const { label, tone } = versionStateLabel(version);
  return (
    <section className="version-row" aria-label={`${version.name}@${version.version}`}>
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
      <VersionEvaluations version={version} evaluations={evaluations} />
      <PromptLibraryView versionId={version.id} />
      <p className="quiet">
        <Trans>
          To use it in a run, name it in the engine, for example{" "}
          <span className="mono">litellm:openai/gpt-5-mini;library={version.name}</span>
        </Trans>
      </p>
    </section>
  );
}
