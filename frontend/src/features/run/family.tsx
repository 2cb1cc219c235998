import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ChildRun, familyQuery } from "@/shared/api/families";
import type { Run } from "@/shared/api/runs";
import { Failure } from "@/shared/ui/loaded";
import "./family.css";

/** The runs that this one has started, with how each stands, and the one that started it. Nothing where there is none. */
export function Family({ run }: { run: Pick<Run, "id" | "status"> }) {
  const family = useQuery(familyQuery(run));
  const { data } = family;
  if (!data) return <Failure query={family} />;
  if (data.parent === null && data.children.length === 0) return null;
  return (
    <nav className="run-family" aria-label="Runs of this run">
      {data.parent !== null && (
        <Link to="/runs/$runId" params={{ runId: data.parent }}>
          Part of another run
        </Link>
      )}
      {data.children.length > 0 && <span>Started {data.children.length}:</span>}
      <ul>
        {data.children.map((child) => (
          <Child key={child.id} child={child} />
        ))}
      </ul>
    </nav>
  );
}

function Child({ child }: { child: ChildRun }) {
  return (
    <li data-status={child.status}>
      <Link to="/runs/$runId" params={{ runId: child.id }}>
        {child.question}
      </Link>{" "}
      <span className="num">{standing(child)}</span>
    </li>
  );
}

/** How a child stands, in two or three words. */
export function standing(child: ChildRun): string {
  const turns = child.turns === 1 ? "1 turn" : `${child.turns} turns`;
  if (child.status === "done") return `${(child.stop_reason ?? "done").replaceAll("_", " ")}, ${turns}`;
  return child.status === "running" ? turns : child.status;
}
