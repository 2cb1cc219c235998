import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import { hasEnded, type RunDetail } from "@/shared/api/runs";
import { formatCompact, formatDuration, formatMs, formatUsd, secondsSince } from "@/shared/format/numbers";
import { currentActionText, runStatusLabel } from "@/shared/format/run-labels";
import { describeAnswerers, describeTechnically } from "@/shared/runs/answerers";
import { useStreamState } from "@/shared/stream/stream-context";
import { useNow } from "@/shared/ui/hooks";
import { lazyView } from "@/shared/ui/lazy-view";
import { RunTitle } from "./run-title";
import "./run-header.css";

const RunFailure = lazyView(msg`the error`, async () => (await import("./run-failure")).RunFailure);

/** Age of the worker's heartbeat from which the web UI reports it. */
const MAX_HEARTBEAT_AGE_SECONDS = 15;

interface RunHeaderProps {
  /** What the run waits for, as the server says it. */
  waitReason: ReactNode;
  run: RunDetail;
  /** Earlier and later questions of the thread, parent and child runs. */
  thread: ReactNode;
  controls: ReactNode;
}

type StateLineProps = Pick<RunHeaderProps, "run" | "waitReason">;

export function RunHeader({ run, waitReason, thread, controls }: RunHeaderProps) {
  const { label, tone } = runStatusLabel(run);
  return (
    <section className="run-head" aria-label={t`Question and status`}>
      {thread}
      <RunTitle run={run} />
      <div className="run-meta">
        <span className={`pill ${tone}`} role="status">
          <i />
          {label}
        </span>
        <StateLine run={run} waitReason={waitReason} />
        <UsageFacts run={run} />
        <span className="quiet run-engine" title={describeTechnically(run)}>
          {describeAnswerers(run.engines)}
        </span>
        <span className="run-controls">{controls}</span>
      </div>
      {(run.status === "failed" || run.error) && <RunFailure run={run} />}
    </section>
  );
}

/** What the run does or waits for, with the duration from three seconds on. One line, so that nothing below moves. */
function StateLine({ run, waitReason }: StateLineProps) {
  const active = !hasEnded(run);
  const now = useNow(1_000, active);
  const stream = useStreamState();
  if (!active) return <EndedLine run={run} />;
  const heartbeatAge =
    run.status === "running" && run.live?.worker_heartbeat_at ? secondsSince(run.live.worker_heartbeat_at, now) : 0;
  if (stream === "lost")
    return (
      <span className="run-action run-disconnected">
        <Trans>connection lost, reconnecting; the run continues</Trans>
      </span>
    );
  if (heartbeatAge > MAX_HEARTBEAT_AGE_SECONDS) {
    return (
      <span className="run-action run-disconnected num">
        <Trans>
          no heartbeat from the worker for {formatDuration(heartbeatAge)}; another worker will continue the run
        </Trans>
      </span>
    );
  }
  return (
    <span className="run-action">
      <CurrentAction run={run} waitReason={waitReason} now={now} />
    </span>
  );
}

function Elapsed({ from, now }: { from: string; now: number }) {
  const seconds = secondsSince(from, now);
  return seconds < 3 ? null : <span className="num"> · {formatDuration(seconds)}</span>;
}

function CurrentAction({ run, waitReason, now }: StateLineProps & { now: number }) {
  if (run.status !== "running") {
    return (
      <>
        {waitText(run) ?? waitReason}
        {run.waiting_since && <Elapsed from={run.waiting_since} now={now} />}
      </>
    );
  }
  if (!run.live) return <Trans>between steps</Trans>;
  const { verb, object } = currentActionText(run.live.current_action);
  return (
    <>
      <span className="run-action-text" title={object}>
        {verb} {object && <b dir="auto">{object}</b>}
      </span>
      <Elapsed from={run.live.since} now={now} />
    </>
  );
}

/** Return what a run without a worker waits for. `null` means what the server says. */
function waitText(run: RunDetail): string | null {
  if (run.status === "queued") return t`waiting for a worker`;
  if (run.status === "paused") return t`waiting for someone to resume it`;
  if (run.pending_input_requests > 0) {
    return plural(run.pending_input_requests, {
      one: "waiting for your answer",
      other: "waiting for # answers of yours",
    });
  }
  return null;
}

function EndedLine({ run }: { run: RunDetail }) {
  if (!run.started_at || !run.ended_at) return null;
  return (
    <span className="run-action num">
      <Trans>took {formatMs(Date.parse(run.ended_at) - Date.parse(run.started_at))}</Trans>
    </span>
  );
}

function UsageFacts({ run }: { run: RunDetail }) {
  const { usage: spent, budget } = run;
  const facts: { name: string; used: string; of: string | null; isObvious?: boolean }[] = [
    { name: t`turns`, used: String(spent.turns), of: String(budget.max_turns) },
  ];
  if (spent.tokens > 0 || budget.max_tokens != null) {
    facts.push({
      name: t`tokens`,
      used: formatCompact(spent.tokens),
      of: budget.max_tokens == null ? null : formatCompact(budget.max_tokens),
    });
  }
  if (spent.cost_usd > 0 || budget.max_cost_usd != null) {
    facts.push({
      name: "",
      used: formatUsd(spent.cost_usd),
      of: budget.max_cost_usd == null ? null : formatUsd(budget.max_cost_usd),
    });
  }
  facts.push({
    name: t`working time`,
    isObvious: budget.max_seconds != null,
    used: formatMs(spent.seconds * 1000),
    of: budget.max_seconds == null ? null : formatDuration(budget.max_seconds),
  });
  return (
    <>
      {facts.map((fact) => (
        <span key={fact.name} className="num run-fact">
          <b>{fact.used}</b>
          {fact.of && t` of ${fact.of}`}
          {fact.name && !fact.isObvious && ` ${fact.name}`}
        </span>
      ))}
    </>
  );
}
