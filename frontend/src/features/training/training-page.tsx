import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { jobsQuery, type ListedJob, type Version, versionsQuery } from "@/shared/api/training";
import { formatAgo } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { lazyView } from "@/shared/ui/lazy-view";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import { DistillRow, DistillView } from "./distill-view";
import {
  formatMetric,
  isDistillation,
  jobConfigText,
  jobStatusLabel,
  stopReasonText,
  trainingStepText,
} from "./training-labels";
import "./training.css";

// Jobs and policies are listed first. The code of the selected one follows.
const JobView = lazyView(msg`the job`, async () => (await import("./job-view")).JobView);
const VersionsView = lazyView(msg`the versions`, async () => (await import("./versions-view")).VersionsView);

interface TrainingPageProps {
  /** Id of the selected job. `null` selects the newest job, unless a policy is selected. */
  job: string | null;
  /** Name of the policy whose versions are shown. `null` means none. */
  policy: string | null;
  /** Name of the prompt library whose distillation form is shown. `null` means none. */
  distill: string | null;
  onJob(id: string): void;
  onPolicy(name: string): void;
  onDistill(name: string): void;
}

/** Jobs and policies on the left, the selected one on the right. */
export function TrainingPage({ job, policy, distill, onJob, onPolicy, onDistill }: TrainingPageProps) {
  const jobs = useInfiniteQuery(jobsQuery);
  const versions = useQuery(versionsQuery);
  // Only for the initial selection. `Loaded` below shows the lists, their errors and empty states.
  const allJobs = jobs.data ? jobs.data.pages.flatMap((page) => page.items) : [];
  const allVersions = versions.data ? versions.data.items : [];
  const libraryName = allVersions.find(({ kind }) => kind === "prompt_library")?.name ?? "lessons";
  const selectedJob = policy === null && distill === null ? (job ?? allJobs[0]?.id ?? null) : null;
  const selectedPolicy = policy ?? (selectedJob === null && distill === null ? (allVersions[0]?.name ?? null) : null);
  const isEmpty = jobs.isSuccess && versions.isSuccess && allJobs.length === 0 && allVersions.length === 0;
  if (isEmpty && selectedJob === null && distill === null)
    return <GettingStarted onDistill={() => onDistill(libraryName)} />;
  return (
    <main className="training">
      <nav className="training-rail" aria-label={t`Jobs and policies`}>
        {!jobs.isPending && !versions.isPending && (
          <DistillRow name={libraryName} current={distill !== null} onPick={() => onDistill(libraryName)} />
        )}
        <h2 className="label">
          <Trans>Jobs</Trans>
        </h2>
        <Loaded
          query={jobs}
          label={t`the jobs`}
          empty={() =>
            allJobs.length === 0 ? (
              <p className="quiet">
                <Trans>No jobs yet. offing train starts a job from stored rollouts.</Trans>
              </p>
            ) : null
          }
        >
          {() => (
            <ul>
              {allJobs.map((one) => (
                <JobRow key={one.id} job={one} current={one.id === selectedJob} onPick={() => onJob(one.id)} />
              ))}
            </ul>
          )}
        </Loaded>
        <LoadMore query={jobs} text={t`Earlier jobs`} />
        <h2 className="label">
          <Trans>Policies</Trans>
        </h2>
        <Loaded query={versions} label={t`the policies`}>
          {() => (
            <ul>
              {[...new Set(allVersions.map((version) => version.name))].map((one) => (
                <PolicyRow
                  key={one}
                  name={one}
                  all={allVersions}
                  current={one === selectedPolicy}
                  onPick={() => onPolicy(one)}
                />
              ))}
            </ul>
          )}
        </Loaded>
      </nav>
      <div className="training-main">
        {distill !== null && <DistillView key={distill} name={distill} onName={onDistill} onJob={onJob} />}
        {selectedJob !== null && <JobView key={selectedJob} jobId={selectedJob} onPolicy={onPolicy} />}
        {selectedJob === null && selectedPolicy !== null && (
          <Loaded query={versions} label={t`the versions`}>
            {({ items }) => <VersionsView key={selectedPolicy} name={selectedPolicy} all={items} onJob={onJob} />}
          </Loaded>
        )}
      </div>
    </main>
  );
}

interface RowProps {
  current: boolean;
  onPick(): void;
}

function JobRow({ job, current, onPick }: RowProps & { job: ListedJob }) {
  const now = useNow(30_000);
  const { label, tone } = jobStatusLabel(job);
  const reason = stopReasonText(job);
  return (
    <li>
      <button type="button" className="rail-row" aria-current={current ? "true" : undefined} onClick={onPick}>
        <span className="rail-name">{job.name}</span>
        <span className={`pill ${tone}`}>
          <i />
          {label}
        </span>
        <span className="rail-facts num">
          {!isDistillation(job) && <span>{trainingStepText(job)}</span>}
          {job.reward !== null && (
            <span>
              <Trans>reward {formatMetric(job.reward)}</Trans>
            </span>
          )}
          <span>{formatAgo(job.created_at, now)}</span>
        </span>
        <span className="rail-reason">{reason || jobConfigText(job)}</span>
      </button>
    </li>
  );
}

function PolicyRow({ name, all, current, onPick }: RowProps & { name: string; all: readonly Version[] }) {
  const versions = all.filter((version) => version.name === name);
  const active = versions.find(({ state }) => state === "active");
  const canary = versions.find(({ state }) => state === "canary");
  return (
    <li>
      <button type="button" className="rail-row" aria-current={current ? "true" : undefined} onClick={onPick}>
        <span className="rail-name">{name}</span>
        <span className="rail-facts num">
          <span>
            <Trans>{versions[0]?.version ?? 0} newest</Trans>
          </span>
          <span>{active ? t`${active.version} active` : t`none active`}</span>
          {canary && (
            <span>
              <Trans>{canary.version} canary</Trans>
            </span>
          )}
        </span>
      </button>
    </li>
  );
}

function GettingStarted({ onDistill }: { onDistill(): void }) {
  return (
    <main className="training-none">
      <div className="empty">
        <b>
          <Trans>No training jobs and no policies yet</Trans>
        </b>
        <p>
          <Trans>
            Run the whole training loop on one machine, with a synthetic world and a weak planner that is trained on its
            own rollouts:
          </Trans>
        </p>
        <p className="mono">offing loop deploy/loop.toml</p>
        <p>
          <Trans>If you have rollouts and a policy, train the policy on the rollouts:</Trans>
        </p>
        <p className="mono">offing train job.toml</p>
        <p>
          <Trans>Jobs appear here when they start. You can watch, pause and cancel them.</Trans>
        </p>
        <p>
          <Trans>
            If you have no weights, distill ratings and corrections of reports into experiences for a hosted model:
          </Trans>
        </p>
        <button type="button" className="btn" onClick={onDistill}>
          <Trans>Distill rated runs</Trans>
        </button>
      </div>
    </main>
  );
}
