import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type ChildRun, runTreeQuery } from "@/shared/api/run-trees";
import type { Run, RunStatus } from "@/shared/api/runs";
import { joinParts } from "@/shared/format/lists";
import { STOP_NAMES } from "@/shared/format/stop-names";
import { Link } from "@/shared/routing/routing";
import { waitReason } from "@/shared/texts/wait-texts";
import { Failure } from "@/shared/ui/loaded";
import "./child-run-list.css";

/** Number of child runs shown before the list is expanded. */
const MAX_COLLAPSED = 6;

/** Child runs of this run with their status, and a link to its parent. Renders nothing if there are neither. */
export function ChildRunList({ run }: { run: Pick<Run, "id" | "status"> }) {
  const tree = useQuery(runTreeQuery(run));
  const [showsAll, setShowsAll] = useState(false);
  const { data } = tree;
  if (!data) return <Failure query={tree} />;
  if (data.parent_id === null && data.children.length === 0) return null;
  const visible = showsAll ? data.children : data.children.slice(0, MAX_COLLAPSED);
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
        {visible.map((child) => (
          <ChildRunItem key={child.id} child={child} />
        ))}
      </ul>
      {visible.length < data.children.length && (
        <button type="button" className="child-runs-more" onClick={() => setShowsAll(true)}>
          <Trans>Show {data.children.length - visible.length} more</Trans>
        </button>
      )}
    </nav>
  );
}

function ChildRunItem({ child }: { child: ChildRun }) {
  return (
    <li data-status={child.status}>
      <Link dir="auto" to="/runs/$runId" params={{ runId: child.id }}>
        {child.question}
      </Link>{" "}
      <span className="num">{childStatusText(child)}</span>{" "}
      {child.status === "done" && (
        <Link
          to="/runs/$runId"
          params={{ runId: child.id }}
          search={{ tab: "report" }}
          aria-label={t`Report: ${child.question}`}
        >
          <Trans>report</Trans>
        </Link>
      )}
    </li>
  );
}

const STATUS_NAMES: Record<RunStatus, MessageDescriptor> = {
  queued: msg`queued`,
  running: msg`running`,
  waiting: msg`waiting`,
  paused: msg`paused`,
  done: msg`done`,
  failed: msg`failed`,
  cancelled: msg`cancelled`,
};

/** Return the status of a child run in two or three words. */
export function childStatusText(child: ChildRun): string {
  const turns = plural(child.turns, { one: "# turn", other: "# turns" });
  if (child.status === "done") {
    const outcome = i18n._(child.stop_reason ? STOP_NAMES[child.stop_reason] : STATUS_NAMES.done);
    return joinParts([outcome, turns]);
  }
  if (child.status === "waiting" && child.waiting_for) return t`waiting for ${waitReason(child)}`;
  return child.status === "running" ? turns : i18n._(STATUS_NAMES[child.status]);
}
