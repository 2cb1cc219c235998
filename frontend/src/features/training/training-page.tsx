import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { jobsQuery, type ListedJob, type Version, versionsQuery } from "@/shared/api/training";
import { ago } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { Loaded, More } from "@/shared/ui/loaded";
import { JobView } from "./job-view";
import { LearnRow, LearnView } from "./learn-view";
import { askedWords, figure, jobWording, learns, stepWords, whyWords } from "./training-words";
import { VersionsView } from "./versions-view";
import "./training.css";

interface TrainingPageProps {
  /** The job that is looked at. null: the newest, unless a policy is. */
  job: string | null;
  /** The name whose versions are looked at. null: none. */
  policy: string | null;
  /** The prompt library that is to learn from rated runs. null: none. */
  learn: string | null;
  onJob(id: string): void;
  onPolicy(name: string): void;
  onLearn(name: string): void;
}

/** Jobs and policies on the left, one of them on the right. */
export function TrainingPage({ job, policy, learn, onJob, onPolicy, onLearn }: TrainingPageProps) {
  const jobs = useInfiniteQuery(jobsQuery);
  const versions = useQuery(versionsQuery);
  // Only to choose what is shown first: what is listed, failed or absent is shown by `Loaded` below.
  const listed = jobs.data ? jobs.data.pages.flatMap((page) => page.items) : [];
  const all = versions.data ? versions.data.items : [];
  const library = all.find(({ kind }) => kind === "prompts")?.name ?? "lessons";
  const shown = policy === null && learn === null ? (job ?? listed[0]?.id ?? null) : null;
  const name = policy ?? (shown === null && learn === null ? (all[0]?.name ?? null) : null);
  const empty = jobs.isSuccess && versions.isSuccess && listed.length === 0 && all.length === 0;
  if (empty && shown === null && learn === null) return <NothingYet onLearn={() => onLearn(library)} />;
  return (
    <main className="training">
      <nav className="training-rail" aria-label="Jobs and policies">
        {!jobs.isPending && !versions.isPending && (
          <LearnRow name={library} current={learn !== null} onPick={() => onLearn(library)} />
        )}
        <h2 className="label">Jobs</h2>
        <Loaded
          query={jobs}
          what="the jobs"
          empty={() => (listed.length === 0 ? <p className="quiet">None yet. {START}</p> : null)}
        >
          {() => (
            <ul>
              {listed.map((one) => (
                <JobRow key={one.id} job={one} current={one.id === shown} onPick={() => onJob(one.id)} />
              ))}
            </ul>
          )}
        </Loaded>
        <More query={jobs} text="Earlier jobs" />
        <h2 className="label">Policies</h2>
        <Loaded query={versions} what="the policies">
          {() => (
            <ul>
              {[...new Set(all.map((version) => version.name))].map((one) => (
                <PolicyRow key={one} name={one} all={all} current={one === name} onPick={() => onPolicy(one)} />
              ))}
            </ul>
          )}
        </Loaded>
      </nav>
      <div className="training-main">
        {learn !== null && <LearnView key={learn} name={learn} onName={onLearn} onJob={onJob} />}
        {shown !== null && <JobView key={shown} id={shown} onPolicy={onPolicy} />}
        {shown === null && name !== null && (
          <Loaded query={versions} what="the versions">
            {({ items }) => <VersionsView key={name} name={name} all={items} onJob={onJob} />}
          </Loaded>
        )}
      </div>
    </main>
  );
}

const START = "offing train starts one from stored rollouts.";

interface RowProps {
  current: boolean;
  onPick(): void;
}

function JobRow({ job, current, onPick }: RowProps & { job: ListedJob }) {
  const now = useNow(30_000);
  const { word, tone } = jobWording(job);
  const why = whyWords(job);
  return (
    <li>
      <button type="button" className="rail-row" aria-current={current ? "true" : undefined} onClick={onPick}>
        <span className="rail-name">{job.name}</span>
        <span className={`pill ${tone}`}>
          <i />
          {word}
        </span>
        <span className="rail-facts num">
          {!learns(job) && <span>{stepWords(job)}</span>}
          {job.reward !== null && <span>reward {figure(job.reward)}</span>}
          <span>{ago(job.created_at, now)}</span>
        </span>
        <span className="rail-why">{why || askedWords(job)}</span>
      </button>
    </li>
  );
}

function PolicyRow({ name, all, current, onPick }: RowProps & { name: string; all: readonly Version[] }) {
  const own = all.filter((version) => version.name === name);
  const active = own.find(({ state }) => state === "active");
  const canary = own.find(({ state }) => state === "canary");
  return (
    <li>
      <button type="button" className="rail-row" aria-current={current ? "true" : undefined} onClick={onPick}>
        <span className="rail-name">{name}</span>
        <span className="rail-facts num">
          <span>{own[0]?.version ?? 0} newest</span>
          <span>{active ? `${active.version} active` : "none active"}</span>
          {canary && <span>{canary.version} canary</span>}
        </span>
      </button>
    </li>
  );
}

function NothingYet({ onLearn }: { onLearn(): void }) {
  return (
    <main className="training-none">
      <div className="empty">
        <b>No job has run and no policy is registered</b>
        <p>
          The whole loop from nothing, on one machine: a made-up world, a weak planner, and training on its own
          rollouts.
        </p>
        <p className="mono">offing loop deploy/loop.toml</p>
        <p>With rollouts and a policy of your own, a job trains one on the other:</p>
        <p className="mono">offing train job.toml</p>
        <p>Either appears here as it begins, and can be watched, paused and cancelled.</p>
        <p>Without weights of your own, what people said about reports becomes advice for a hosted model:</p>
        <button type="button" className="btn" onClick={onLearn}>
          Learn from rated runs
        </button>
      </div>
    </main>
  );
}
