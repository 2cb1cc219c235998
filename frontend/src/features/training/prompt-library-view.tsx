import { i18n } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { type PromptLibrary, promptLibraryQuery } from "@/shared/api/training";
import { Link } from "@/shared/routing/routing";
import { Loaded } from "@/shared/ui/loaded";
import { formatMetric, shortId } from "./training-labels";

/** Text of a version of a prompt library, its changes, and the runs that each part comes from. */
export function PromptLibraryView({ versionId }: { versionId: string }) {
  const library = useQuery(promptLibraryQuery(versionId));
  return (
    <Loaded
      query={library}
      label={t`the text`}
      empty={({ experiences, cases }) =>
        experiences.length === 0 && cases.length === 0 ? (
          <p className="quiet">
            <Trans>No experiences and no cases: the prompt is unchanged.</Trans>
          </p>
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
const CHANGE_NAMES = { added: msg`added`, changed: msg`changed`, removed: msg`removed` };

/** Return text such as `, 2 changed since lessons@1`. */
function changesSince(count: number, before: string): string {
  return count === 0 ? t`, none changed since ${before}` : t`, ${count} changed since ${before}`;
}

/** Current and removed experiences. A changed experience has a sign and its previous text. */
function Experiences({ library: { previous_version: before, changes, experiences } }: { library: PromptLibrary }) {
  const changeById = new Map(changes.map((change) => [change.id, change]));
  const removed = changes.filter(({ kind }) => kind === "removed");
  return (
    <section aria-label={t`Experiences`}>
      <h3 className="label">
        {plural(experiences.length, { one: "# experience", other: "# experiences" })}
        {before && changesSince(changes.length, before)}
      </h3>
      <ol className="experiences">
        {experiences.map(({ id, text, run_ids: runs, groups }) => (
          <Experience key={id} id={id} change={changeById.get(id)}>
            <ins dir="auto">{text}</ins>
            <small className="num">
              {groups > 0
                ? t`from ${plural(groups, { one: "# comparison", other: "# comparisons" })}`
                : t`written by a person`}{" "}
              <RunLinks ids={runs} />
            </small>
          </Experience>
        ))}
        {removed.map((change) => (
          <Experience key={change.id} id={change.id} change={change}>
            <small className="num">
              <Trans>removed</Trans> <RunLinks ids={change.run_ids} />
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
      <span className="mono" title={change ? i18n._(CHANGE_NAMES[change.kind]) : t`unchanged`}>
        {change ? CHANGE_SIGNS[change.kind] : " "} {id}
      </span>
      <span>
        {change?.before && <del dir="auto">{change.before}</del>}
        {children}
      </span>
    </li>
  );
}

const MAX_CASES = 20;

function Cases({ text: { cases, new_cases, removed_cases: lost_cases } }: { text: PromptLibrary }) {
  if (cases.length === 0) return null;
  const changesText = lost_cases > 0 ? t`${new_cases} new, ${lost_cases} removed` : t`${new_cases} new`;
  return (
    <details className="prompt-library-details">
      <summary>
        <Trans>
          <Plural value={cases.length} one="# case" other="# cases" />, {changesText}: earlier questions with their
          actions and rewards
        </Trans>
      </summary>
      <ol className="cases">
        {cases.slice(0, MAX_CASES).map((one) => (
          <li key={`${one.run_id}${one.question}`}>
            <p dir="auto">{one.question}</p>
            <p dir="auto" className="quiet">
              {one.plan.join(" · ")}
              {one.outcome && ` → ${one.outcome}`}
            </p>
            <p className="quiet num">
              <Trans>reward {formatMetric(one.reward)} of 1</Trans>
              {one.is_new && t`, new`} <RunLinks ids={one.run_id ? [one.run_id] : []} />
            </p>
          </li>
        ))}
      </ol>
      {cases.length > MAX_CASES && (
        <p className="quiet num">
          <Trans>
            and <Plural value={cases.length - MAX_CASES} one="# older case" other="# older cases" />
          </Trans>
        </p>
      )}
    </details>
  );
}

function RunLinks({ ids }: { ids: readonly string[] }) {
  return (
    <span className="origin">
      {ids.map((id) => (
        <Link key={id} to="/runs/$runId" params={{ runId: id }} className="mono" title={t`Run that this comes from`}>
          {shortId(id)}
        </Link>
      ))}
    </span>
  );
}
