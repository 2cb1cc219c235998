import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ChildRun, runTreeQuery } from "@/shared/api/run-trees";
import type { Run } from "@/shared/api/runs";
import { Failure } from "@/shared/ui/loaded";
import "./child-run-list.css";

/** Child runs of this run with their status, and a link to its parent. Renders nothing if there are neither. */
export function ChildRunList({ run }: { run: Pick<Run, "id" | "status"> }) {
  const tree = useQuery(runTreeQuery(run));
  const { data } = tree;
  if (!data) return <Failure query={tree} />;
  if (data.parent_id === null && data.children.length === 0) return null;
  return (
    <nav className="child-runs" aria-label={t`Parent and child runs`}>
      {data.parent_id !== null && (
        <Link to="/runs/$runId" params={{ runId: data.parent_id }}>
          <Trans>Child run of another run</Trans>
        </Link>
      )}
      {data.children.length > 0 && (
        <span>
          <Trans>Child runs ({data.children.length}):</Trans>
        </span>
      )}
      <ul>
        {data.children.map((child) => (
          <ChildRunItem key={child.id} child={child} />
        ))}
      </ul>
    </nav>
  );
}

function ChildRunItem({ child }: { child: ChildRun }) {
  return (
    <li data-status={child.status}>
      <Link to="/runs/$runId" params={{ runId: child.id }}>
        {child.question}
      </Link>{" "}
      <span className="num">{childStatusText(child)}</span>
    </li>
  );
}

/** Return the status of a child run in two or three words. */
export function childStatusText(child: ChildRun): string {
  const turns = plural(child.turns, { one: "# turn", other: "# turns" });
  if (child.status === "done") return `${(child.stop_reason ?? "done").replaceAll("_", " ")}, ${turns}`;
  return child.status === "running" ? turns : child.status;
}
