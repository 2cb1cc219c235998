import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type LibraryText, libraryTextQuery } from "@/shared/api/training";
import { counted } from "@/shared/format/numbers";
import { Loaded } from "@/shared/ui/loaded";
import { figure, shortId } from "./training-words";

/** What a version of a prompt library says, what it changed, and which runs each part comes from. */
export function LibraryTextView({ id }: { id: string }) {
  const text = useQuery(libraryTextQuery(id));
  return (
    <Loaded
      query={text}
      what="its text"
      empty={({ experiences, cases }) =>
        experiences.length === 0 && cases.length === 0 ? (
          <p className="quiet">Nothing: the prompt is unchanged.</p>
        ) : null
      }
    >
      {(loaded) => (
        <div className="library-text">
          <Experiences text={loaded} />
          <Cases text={loaded} />
        </div>
      )}
    </Loaded>
  );
}

const SIGN = { added: "+", changed: "±", removed: "−" };

/** Each experience, and those that are gone; a sign and the old text where it differs from the version before. */
function Experiences({ text: { before, changes, experiences } }: { text: LibraryText }) {
  const changed = new Map(changes.map((change) => [change.id, change]));
  const gone = changes.filter(({ kind }) => kind === "removed");
  return (
    <section aria-label="Experiences">
      <h3 className="label">
        {counted(experiences.length, "experience")}
        {before && `, ${changes.length === 0 ? "none" : changes.length} changed since ${before}`}
      </h3>
      <ol className="experiences">
        {experiences.map(({ id, text, runs, groups }) => (
          <Experience key={id} id={id} change={changed.get(id)}>
            <ins>{text}</ins>
            <small className="num">
              {groups > 0 ? `from ${counted(groups, "comparison")}` : "a person wrote it"} <Runs ids={runs} />
            </small>
          </Experience>
        ))}
        {gone.map((change) => (
          <Experience key={change.id} id={change.id} change={change}>
            <small className="num">
              gone <Runs ids={change.runs} />
            </small>
          </Experience>
        ))}
      </ol>
    </section>
  );
}

interface ExperienceProps {
  id: string;
  change: LibraryText["changes"][number] | undefined;
  children: ReactNode;
}

function Experience({ id, change, children }: ExperienceProps) {
  return (
    <li className={change?.kind}>
      <span className="mono" title={change?.kind ?? "as before"}>
        {change ? SIGN[change.kind] : " "} {id}
      </span>
      <span>
        {change?.before && <del>{change.before}</del>}
        {children}
      </span>
    </li>
  );
}

const SHOWN = 20;

function Cases({ text: { cases, new_cases, lost_cases } }: { text: LibraryText }) {
  if (cases.length === 0) return null;
  const told = `${new_cases} new${lost_cases > 0 ? `, ${lost_cases} gone` : ""}`;
  return (
    <details className="library-fold">
      <summary>
        {counted(cases.length, "case")}, {told}: earlier questions, what was done, how it was judged
      </summary>
      <ol className="cases">
        {cases.slice(0, SHOWN).map((one) => (
          <li key={`${one.run_id}${one.question}`}>
            <p>{one.question}</p>
            <p className="quiet">
              {one.plan.join(" · ")}
              {one.outcome && ` → ${one.outcome}`}
            </p>
            <p className="quiet num">
              judged {figure(one.reward)} of 1{one.new && ", new"} <Runs ids={one.run_id ? [one.run_id] : []} />
            </p>
          </li>
        ))}
      </ol>
      {cases.length > SHOWN && <p className="quiet num">and {counted(cases.length - SHOWN, "older case")}</p>}
    </details>
  );
}

function Runs({ ids }: { ids: readonly string[] }) {
  return (
    <span className="origin">
      {ids.map((id) => (
        <Link key={id} to="/runs/$runId" params={{ runId: id }} className="mono" title="The run that it comes from">
          {shortId(id)}
        </Link>
      ))}
    </span>
  );
}
