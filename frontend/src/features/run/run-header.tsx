import type { ReactNode } from "react";
import { hasEnded, type RunDetail } from "@/shared/api/runs";
import { money, short, since, span, took } from "@/shared/format/numbers";
import { doingWords, statusWording } from "@/shared/format/run-words";
import { useStreamState } from "@/shared/stream/stream-context";
import { useNow } from "@/shared/ui/hooks";
import "./run-header.css";

/** Without a sign of life for so many seconds, the page says so. */
const SILENT_SECONDS = 15;

interface RunHeaderProps {
  run: RunDetail;
  /** Earlier questions of the thread. */
  thread: ReactNode;
  controls: ReactNode;
}

export function RunHeader({ run, thread, controls }: RunHeaderProps) {
  const { word, tone } = statusWording(run);
  return (
    <section className="run-head" aria-label="Question and state">
      {thread}
      <h1>{run.question}</h1>
      <div className="run-meta">
        <span className={`pill ${tone}`} role="status">
          <i />
          {word}
        </span>
        <StateLine run={run} />
        <Used run={run} />
        <span className="quiet run-engine">
          {run.graph} · {enginesOf(run)}
        </span>
        <span className="run-controls">{controls}</span>
      </div>
      {run.error && <p className="notice coral">{run.error}</p>}
    </section>
  );
}

function enginesOf(run: RunDetail): string {
  const names = new Set(Object.values(run.engines).map(engineOf));
  return names.size > 0 ? [...names].join(", ") : "default engine";
}

function engineOf(choice: RunDetail["engines"][string]): string {
  const name = choice.model || choice.engine;
  return choice.library ? `${name} with ${choice.library}` : name;
}

/** What the run does or waits for, and for how long once that is worth saying. One line, so that nothing below moves. */
function StateLine({ run }: { run: RunDetail }) {
  const active = !hasEnded(run);
  const now = useNow(1_000, active);
  const stream = useStreamState();
  if (!active) return <EndedLine run={run} />;
  const silent = run.status === "running" && run.live?.worker_seen ? since(run.live.worker_seen, now) : 0;
  if (stream === "lost")
    return <span className="run-doing run-lost">connection lost, trying again; the run goes on</span>;
  if (silent > SILENT_SECONDS) {
    return <span className="run-doing run-lost num">no sign of its worker for {span(silent)}; another takes over</span>;
  }
  return (
    <span className="run-doing">
      <Doing run={run} now={now} />
    </span>
  );
}

function Lasting({ from, now }: { from: string; now: number }) {
  const seconds = since(from, now);
  return seconds < 3 ? null : <span className="num"> · {span(seconds)}</span>;
}

function Doing({ run, now }: { run: RunDetail; now: number }) {
  if (run.status !== "running") {
    return (
      <>
        {waitWords(run)}
        {run.waiting_since && <Lasting from={run.waiting_since} now={now} />}
      </>
    );
  }
  if (!run.live) return <>between two steps</>;
  const { verb, object } = doingWords(run.live.doing);
  return (
    <>
      <span className="run-doing-what" title={object}>
        {verb} {object && <b>{object}</b>}
      </span>
      <Lasting from={run.live.since} now={now} />
    </>
  );
}

/** What a run that no worker works on waits for. */
function waitWords(run: RunDetail): string {
  if (run.status === "queued") return "waiting for a worker";
  if (run.status === "paused") return `waiting for ${run.waiting_for ?? "a person to resume it"}`;
  return `waiting for ${run.waiting_for ?? "something it does not name"}`;
}

function EndedLine({ run }: { run: RunDetail }) {
  if (!run.started_at || !run.ended_at) return null;
  return <span className="run-doing num">took {took(Date.parse(run.ended_at) - Date.parse(run.started_at))}</span>;
}

function Used({ run }: { run: RunDetail }) {
  const { spent, budget } = run;
  const facts: { name: string; used: string; of: string | null }[] = [
    { name: "turns", used: String(spent.turns), of: String(budget.turns) },
  ];
  if (spent.tokens > 0 || budget.tokens != null) {
    facts.push({ name: "tokens", used: short(spent.tokens), of: budget.tokens == null ? null : short(budget.tokens) });
  }
  if (spent.usd > 0 || budget.usd != null) {
    facts.push({ name: "", used: money(spent.usd), of: budget.usd == null ? null : money(budget.usd) });
  }
  facts.push({
    name: "of work",
    used: took(spent.seconds * 1000),
    of: budget.seconds == null ? null : span(budget.seconds),
  });
  return (
    <>
      {facts.map((fact) => (
        <span key={fact.name} className="num run-fact">
          <b>{fact.used}</b>
          {fact.of && ` of ${fact.of}`}
          {fact.name && (fact.name !== "of work" || !fact.of) && ` ${fact.name}`}
        </span>
      ))}
    </>
  );
}
