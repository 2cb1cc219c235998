import { useQuery } from "@tanstack/react-query";
import {
  evaluationsQuery,
  isLive,
  type JobDetail,
  jobEventsQuery,
  learningQuery,
  type Version,
  versionsQuery,
} from "@/shared/api/training";
import { count, counted } from "@/shared/format/numbers";
import { ProblemNote } from "@/shared/ui/problem-note";
import { Events, Ledger } from "./job-record";
import { LibraryTextView } from "./library-text";
import { costWords, versionWording } from "./training-words";
import { VersionActions } from "./version-actions";
import { Scores } from "./versions-view";
import "./learning.css";

/** How far a job that learns is, and what it has cost. */
export function LearningFigures({ job }: { job: JobDetail }) {
  const figures = useQuery(learningQuery(job)).data ?? new Map<string, number>();
  return (
    <>
      <span>
        <b>{count(figures.get("compared") ?? 0)}</b>
        {figures.has("total") && ` of ${counted(figures.get("total") ?? 0, "comparison")}`}
      </span>
      <span>
        <b>{costWords(figures)}</b>
      </span>
    </>
  );
}

/** What it made, and which runs it learned from. */
export function LearningRecord({ job }: { job: JobDetail }) {
  const figures = useQuery(learningQuery(job));
  const events = useQuery(jobEventsQuery(job));
  const versions = useQuery(versionsQuery).data?.items ?? [];
  const made = versions.find(({ id }) => id === job.produced_id);
  const total = figures.data?.get("total") ?? 0;
  return (
    <>
      <ProblemNote error={figures.error ?? events.error} onRetry={() => figures.refetch()} />
      {isLive(job) && total > 0 && (
        <progress
          className="comparing"
          aria-label="Comparisons"
          max={total}
          value={figures.data?.get("compared") ?? 0}
        />
      )}
      {isLive(job) && <p className="quiet">It may be left: what was compared stays, also when its worker is lost.</p>}
      {made && <Made version={made} versions={versions} />}
      <div className="job-parts">
        <Ledger job={job} />
        <Events events={events.data?.items ?? []} />
      </div>
    </>
  );
}

/** The candidate, whole: state, what may be done with it, how it measured, and its text. */
function Made({ version, versions }: { version: Version; versions: readonly Version[] }) {
  const evaluations = useQuery(evaluationsQuery(version.name));
  const active = versions.find(({ name, state }) => name === version.name && state === "active");
  const { word, tone } = versionWording(version);
  const own = (evaluations.data?.items ?? []).filter(({ policy_id }) => policy_id === version.id);
  return (
    <section className="version-row" aria-label={`${version.name}@${version.version}`}>
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
      <Scores version={version} evaluations={own} />
      <LibraryTextView id={version.id} />
      <p className="quiet">
        Runs are shown it where their engine names it, such as{" "}
        <span className="mono">litellm:openai/gpt-5-mini;library={version.name}</span>
      </p>
    </section>
  );
}
