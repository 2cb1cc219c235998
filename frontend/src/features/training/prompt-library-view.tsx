import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type PromptLibrary, promptLibraryQuery } from "@/shared/api/training";
import { pluralize } from "@/shared/format/numbers";
import { Loaded } from "@/shared/ui/loaded";
import { formatMetric, shortId } from "./training-labels";

/** Text of a version of a prompt library, its changes, and the runs that each part comes from. */
export function PromptLibraryView({ versionId }: { versionId: string }) {
  const library = useQuery(promptLibraryQuery(versionId));
  return (
    <Loaded
      query={library}
      label="the text"
      empty={({ experiences, cases }) =>
        experiences.length === 0 && cases.length === 0 ? (
          <p className="quiet">No experiences and no cases: the prompt is unchanged.</p>
        ) : null
      }
    >
      {(loaded) => (
        <div className="prompt-library">
          <Experiences library={loaded} />
          <Cases text={loaded} />
        </div>
      )}
    </Loaded>
  );
}

const CHANGE_SIGNS = { added: "+", changed: "±", removed: "−" };

/** Current and removed experiences. A changed experience has a sign and its previous text. */
function Experiences({ library: { previous_version: before, changes, experiences } }: { library: PromptLibrary }) {
  const changeById = new Map(changes.map((change) => [change.id, change]));
  const removed = changes.filter(({ kind }) => kind === "removed");
  return (
    <section aria-label="Experiences">
      <h3 className="label">
        {pluralize(experiences.length, "experience")}
        {before && `, ${changes.length === 0 ? "none" : changes.length} changed since ${before}`}
      </h3>
      <ol className="experiences">
        {experiences.map(({ id, text, run_ids: runs, groups }) => (
          <Experience key={id} id={id} change={changeById.get(id)}>
            <ins>{text}</ins>
            <small className="num">
              {groups > 0 ? `from ${pluralize(groups, "comparison")}` : "written by a person"} <RunLinks ids={runs} />
            </small>
          </Experience>
        ))}
        {removed.map((change) => (
          <Experience key={change.id} id={change.id} change={change}>
            <small className="num">
              removed <RunLinks ids={change.run_ids} />
            </small>
          </Experience>
        ))}
      </ol>
    </section>
  );
}

interface ExperienceProps {
  id: string;
  change: PromptLibrary["changes"][number] | undefined;
  children: ReactNode;
}

function Experience({ id, change, children }: ExperienceProps) {
  return (
    <li className={change?.kind}>
      <span className="mono" title={change?.kind ?? "unchanged"}>
        {change ? CHANGE_SIGNS[change.kind] : " "} {id}
      </span>
      <span>
        {change?.before && <del>{change.before}</del>}
        {children}
      </span>
    </li>
  );
}

const MAX_CASES = 20;

function Cases({ text: { cases, new_cases, removed_cases: lost_cases } }: { text: PromptLibrary }) {
  if (cases.length === 0) return null;
  const changesText = `${new_cases} new${lost_cases > 0 ? `, ${lost_cases} removed` : ""}`;
  return (
    <details className="prompt-library-details">
      <summary>
        {pluralize(cases.length, "case")}, {changesText}: earlier questions with their actions and rewards
      </summary>
      <ol className="cases">
        {cases.slice(0, MAX_CASES).map((one) => (
          <li key={`${one.run_id}${one.question}`}>
            <p>{one.question}</p>
            <p className="quiet">
              {one.plan.join(" · ")}
              {one.outcome && ` → ${one.outcome}`}
            </p>
            <p className="quiet num">
              reward {formatMetric(one.reward)} of 1{one.is_new && ", new"}{" "}
              <RunLinks ids={one.run_id ? [one.run_id] : []} />
            </p>
          </li>
        ))}
      </ol>
      {cases.length > MAX_CASES && <p className="quiet num">and {pluralize(cases.length - MAX_CASES, "older case")}</p>}
    </details>
  );
}

function RunLinks({ ids }: { ids: readonly string[] }) {
  return (
    <span className="origin">
      {ids.map((id) => (
        <Link key={id} to="/runs/$runId" params={{ runId: id }} className="mono" title="Run that this comes from">
          {shortId(id)}
        </Link>
      ))}
    </span>
  );
}
