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
import { Loaded } from "@/shared/ui/loaded";
import { Events, Ledger } from "./job-record";
import { LibraryTextView } from "./library-text";
import { costWords, versionWording } from "./training-words";
import { VersionActions } from "./version-actions";
import { Scores } from "./versions-view";
import "./learning.css";

/** How far a job that learns is, and what it has cost. */
export function LearningFigures({ job }: { job: JobDetail }) {
  const stored = useQuery(learningQuery(job));
  const figures = stored.data;
  // Where they could not be fetched, the record below says so.
  if (!figures || stored.isLoadingError) return null;
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
  const versions = useQuery(versionsQuery);
  return (
    <>
      <Loaded query={figures} what="its figures">
        {(known) => isLive(job) && <Progress figures={known} />}
      </Loaded>
      {isLive(job) && (
        <p className="quiet">You can close this page. Finished comparisons are saved even if the worker stops.</p>
      )}
      {job.produced_id !== null && (
        <Loaded query={versions} what="what it made">
          {({ items }) => {
            const made = items.find(({ id }) => id === job.produced_id);
            return made && <Made version={made} versions={items} />;
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

function Progress({ figures }: { figures: ReadonlyMap<string, number> }) {
  const total = figures.get("total") ?? 0;
  if (total === 0) return null;
  return <progress className="comparing" aria-label="Comparisons" max={total} value={figures.get("compared") ?? 0} />;
}

/** The candidate, whole: state, what may be done with it, how it measured, and its text. */
function Made({ version, versions }: { version: Version; versions: readonly Version[] }) {
  const evaluations = useQuery(evaluationsQuery(version.name));
  const active = versions.find(({ name, state }) => name === version.name && state === "active");
  const { word, tone } = versionWording(version);
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
      <Scores version={version} evaluations={evaluations} />
      <LibraryTextView id={version.id} />
      <p className="quiet">
        Runs are shown it where their engine names it, such as{" "}
        <span className="mono">litellm:openai/gpt-5-mini;library={version.name}</span>
      </p>
    </section>
  );
}
