import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import {
  isLive,
  type JobDetail,
  jobEventsQuery,
  jobQuery,
  metricsQuery,
  type TrainingEvent,
} from "@/shared/api/training";
import { formatCount, formatDuration, secondsSince } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { combineQueries, Loaded } from "@/shared/ui/loaded";
import { buildGroupBars, buildSeries, type Series, sumGroupBars } from "./curve-geometry";
import { Curves, GroupOutcomeChart } from "./curves";
import { DistillationDetails, DistillationMetrics } from "./distillation-job";
import { JobControls } from "./job-controls";
import { Events, Ledger } from "./job-record";
import {
  isDistillation,
  jobConfigText,
  jobStatusLabel,
  judgesText,
  phaseText,
  shortId,
  stopReasonText,
  trainingStepText,
} from "./training-labels";

/** One job with its state, metrics, ledger and events. */
export function JobView({ jobId, onPolicy }: { jobId: string; onPolicy(name: string): void }) {
  const query = useQuery(jobQuery(jobId));
  return (
    <Loaded query={query} label={t`the job`}>
      {(job) => (
        <article className="job" aria-label={t`Job ${shortId(jobId)}`}>
          <JobHead job={job} onPolicy={onPolicy} />
          {isDistillation(job) ? <DistillationDetails job={job} /> : <TrainingDetails job={job} />}
        </article>
      )}
    </Loaded>
  );
}

const NOTICE_CLASSES: Partial<Record<JobDetail["state"], string>> = { failed: "notice coral", queued: "notice sun" };

function JobHead({ job, onPolicy }: { job: JobDetail; onPolicy(name: string): void }) {
  const now = useNow(1_000, isLive(job));
  const { label, tone } = jobStatusLabel(job);
  const end = job.ended_at ? Date.parse(job.ended_at) : now;
  const reason = stopReasonText(job);
  return (
    <header className="job-head">
      <h1>
        {job.name} <span className="mono quiet">{shortId(job.id)}</span>
      </h1>
      <div className="job-meta num">
        <span className={`pill ${tone}`}>
          <i />
          {label}
        </span>
        {phaseText(job) && <span>{phaseText(job)}</span>}
        {isDistillation(job) ? <DistillationMetrics job={job} /> : <TrainingMetrics job={job} />}
        {job.started_at && <span>{formatDuration(secondsSince(job.started_at, end))}</span>}
        <span>{jobConfigText(job)}</span>
        {job.produced_version_id && (
          <button type="button" className="linkish" onClick={() => onPolicy(job.name)}>
            <Trans>show versions</Trans>
          </button>
        )}
        <span className="job-controls">
          <JobControls job={job} />
        </span>
      </div>
      {reason && <p className={NOTICE_CLASSES[job.state] ?? "quiet"}>{reason}</p>}
    </header>
  );
}

function TrainingMetrics({ job }: { job: JobDetail }) {
  return (
    <>
      <span>
        <b>{trainingStepText(job)}</b>
      </span>
      {job.seconds_left !== null && <span>{t`about ${formatDuration(job.seconds_left)} left`}</span>}
      <span>
        <Trans>
          <b>{formatCount(job.groups)}</b> groups considered
        </Trans>
      </span>
      <span>
        <Trans>
          <b>{formatCount(job.rollouts)}</b> rollouts trained on
        </Trans>
      </span>
      {judgesText(job) && <span>{judgesText(job)}</span>}
    </>
  );
}

function TrainingDetails({ job }: { job: JobDetail }) {
  const metrics = useQuery(metricsQuery(job));
  const events = useQuery(jobEventsQuery(job));
  const chartData = combineQueries({ metrics, events });
  const steps = (problemSteps: readonly number[]) =>
    Math.max(job.step, isLive(job) ? (job.planned_steps ?? 1) : 1, ...problemSteps);
  return (
    <>
      {job.step === 0 && (
        <p className="quiet">
          <Trans>Charts appear after the first training step.</Trans>
        </p>
      )}
      {job.step > 0 && (
        <Loaded query={chartData} label={t`the charts`}>
          {(loaded) => {
            const problemSteps = listProblemSteps(loaded.events.items);
            return (
              <Curves series={buildSeries(loaded.metrics)} steps={steps(problemSteps)} problemSteps={problemSteps} />
            );
          }}
        </Loaded>
      )}
      <div className="job-parts">
        <section aria-label={t`Groups`}>
          <h2 className="label">
            <Trans>Groups</Trans>
          </h2>
          <Loaded query={chartData} label={t`the groups`}>
            {(loaded) => (
              <GroupOutcomes
                series={buildSeries(loaded.metrics)}
                steps={steps(listProblemSteps(loaded.events.items))}
              />
            )}
          </Loaded>
        </section>
        <Ledger job={job} />
        <Events events={events} />
      </div>
      <details className="job-config">
        <summary>
          <Trans>Configuration</Trans>
        </summary>
        <pre className="mono">{JSON.stringify(job.config, null, 2)}</pre>
      </details>
    </>
  );
}

/** Return the steps that a guard or a non-finite gradient stopped. */
function listProblemSteps(events: readonly TrainingEvent[]): number[] {
  const problems = events.filter(({ kind }) => kind === "guard" || kind === "not_finite");
  return [...new Set(problems.map(({ detail }) => Number(detail.step)).filter((step) => step > 0))];
}

function GroupOutcomes({ series, steps }: { series: Series; steps: number }) {
  const bars = buildGroupBars(series);
  const total = sumGroupBars(bars);
  return (
    <>
      {bars.length === 0 && (
        <p className="quiet">
          <Trans>No groups yet.</Trans>
        </p>
      )}
      {bars.length > 0 && <GroupOutcomeChart series={series} steps={steps} />}
      {bars.length > 0 && (
        <dl className="metrics num">
          <GroupTotal sign="informative" name={t`used, different rewards`} value={total.informative} />
          <GroupTotal sign="uniform" name={t`used, equal rewards (zero variance)`} value={total.uniform} />
          <GroupTotal sign="unused" name={t`stale`} value={total.stale} />
          <GroupTotal sign="unused" name={t`incomplete`} value={total.incomplete} />
        </dl>
      )}
    </>
  );
}

function GroupTotal({ sign, name, value }: { sign: string; name: string; value: number }) {
  return (
    <div>
      <dt>
        <i className={`sign ${sign}`} />
        {name}
      </dt>
      <dd>{formatCount(value)}</dd>
    </div>
  );
}
