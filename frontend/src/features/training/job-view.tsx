import { useQuery } from "@tanstack/react-query";
import {
  isLive,
  type JobDetail,
  jobEventsQuery,
  jobQuery,
  metricsQuery,
  type TrainingEvent,
} from "@/shared/api/training";
import { count, since, span } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { Loaded, together } from "@/shared/ui/loaded";
import { groupBars, groupTotals, type Series, seriesOf } from "./curve-geometry";
import { Curves, GroupHorizon } from "./curves";
import { JobControls } from "./job-controls";
import { Events, Ledger } from "./job-record";
import { LearningFigures, LearningRecord } from "./learning-job";
import { askedWords, doingWords, jobWording, learns, shortId, stepWords, whyWords } from "./training-words";

/** One job: what it does, how its figures go, what became of its rollouts, and what was decided. */
export function JobView({ id, onPolicy }: { id: string; onPolicy(name: string): void }) {
  const query = useQuery(jobQuery(id));
  return (
    <Loaded query={query} what="the job">
      {(job) => (
        <article className="job" aria-label={`Job ${shortId(id)}`}>
          <JobHead job={job} onPolicy={onPolicy} />
          {learns(job) ? <LearningRecord job={job} /> : <JobRecord job={job} />}
        </article>
      )}
    </Loaded>
  );
}

const WHY: Partial<Record<JobDetail["state"], string>> = { failed: "notice coral", queued: "notice sun" };

function JobHead({ job, onPolicy }: { job: JobDetail; onPolicy(name: string): void }) {
  const now = useNow(1_000, isLive(job));
  const { word, tone } = jobWording(job);
  const end = job.ended_at ? Date.parse(job.ended_at) : now;
  const why = whyWords(job);
  return (
    <header className="job-head">
      <h1>
        {job.name} <span className="mono quiet">{shortId(job.id)}</span>
      </h1>
      <div className="job-meta num">
        <span className={`pill ${tone}`}>
          <i />
          {word}
        </span>
        {doingWords(job) && <span>{doingWords(job)}</span>}
        {learns(job) ? <LearningFigures job={job} /> : <TrainingFigures job={job} />}
        {job.started_at && <span>{span(since(job.started_at, end))}</span>}
        <span>{askedWords(job)}</span>
        {job.produced_id && (
          <button type="button" className="linkish" onClick={() => onPolicy(job.name)}>
            its versions
          </button>
        )}
        <span className="job-controls">
          <JobControls job={job} />
        </span>
      </div>
      {why && <p className={WHY[job.state] ?? "quiet"}>{why}</p>}
    </header>
  );
}

function TrainingFigures({ job }: { job: JobDetail }) {
  return (
    <>
      <span>
        <b>{stepWords(job)}</b>
      </span>
      <span>
        <b>{count(job.groups)}</b> groups looked at
      </span>
      <span>
        <b>{count(job.rollouts)}</b> rollouts trained on
      </span>
    </>
  );
}

function JobRecord({ job }: { job: JobDetail }) {
  const metrics = useQuery(metricsQuery(job));
  const events = useQuery(jobEventsQuery(job));
  const planned = job.config.steps;
  const measured = together({ metrics, events });
  const steps = (marks: readonly number[]) =>
    Math.max(job.step, typeof planned === "number" && isLive(job) ? planned : 1, ...marks);
  return (
    <>
      {job.step === 0 && <p className="quiet">Its curves begin with its first step.</p>}
      {job.step > 0 && (
        <Loaded query={measured} what="its curves">
          {(known) => {
            const marks = troubles(known.events.items);
            return <Curves series={seriesOf(known.metrics)} steps={steps(marks)} marks={marks} />;
          }}
        </Loaded>
      )}
      <div className="job-parts">
        <section aria-label="Groups">
          <h2 className="label">Groups</h2>
          <Loaded query={measured} what="the groups">
            {(known) => <Groups series={seriesOf(known.metrics)} steps={steps(troubles(known.events.items))} />}
          </Loaded>
        </section>
        <Ledger job={job} />
        <Events events={events} />
      </div>
      <details className="job-config">
        <summary>Configuration</summary>
        <pre className="mono">{JSON.stringify(job.config, null, 2)}</pre>
      </details>
    </>
  );
}

/** Steps that a guard or a gradient that was no number stopped. */
function troubles(events: readonly TrainingEvent[]): number[] {
  const bad = events.filter(({ kind }) => kind === "guard" || kind === "not_finite");
  return [...new Set(bad.map(({ detail }) => Number(detail.step)).filter((step) => step > 0))];
}

function Groups({ series, steps }: { series: Series; steps: number }) {
  const bars = groupBars(series);
  const total = groupTotals(bars);
  return (
    <>
      {bars.length === 0 && <p className="quiet">No group has been looked at.</p>}
      {bars.length > 0 && <GroupHorizon series={series} steps={steps} />}
      {bars.length > 0 && (
        <dl className="figures num">
          <Total sign="differing" name="used, attempts differ" value={total.differing} />
          <Total sign="alike" name="used, all alike (zero variance)" value={total.alike} />
          <Total sign="lost" name="stale" value={total.stale} />
          <Total sign="lost" name="short" value={total.short} />
        </dl>
      )}
    </>
  );
}

function Total({ sign, name, value }: { sign: string; name: string; value: number }) {
  return (
    <div>
      <dt>
        <i className={`sign ${sign}`} />
        {name}
      </dt>
      <dd>{count(value)}</dd>
    </div>
  );
}
