import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { engineChoice, enginesQuery } from "@/shared/api/catalog";
import { type LearnRequest, learn, type Outlook, outlookQuery } from "@/shared/api/training";
import { count, counted } from "@/shared/format/numbers";
import { ProblemNote } from "@/shared/ui/problem-note";
import "./learning.css";

/** How many rated runs wait to be learned from. */
export function LearnRow({ name, current, onPick }: { name: string; current: boolean; onPick(): void }) {
  const outlook = useQuery(outlookQuery(name)).data;
  return (
    <ul>
      <li>
        <button type="button" className="rail-row" aria-current={current ? "true" : undefined} onClick={onPick}>
          <span className="rail-name">Learn from rated runs</span>
          {outlook && <span className="rail-facts num">{sinceWords(outlook)}</span>}
        </button>
      </li>
    </ul>
  );
}

/** `12 rated runs since lessons@1`. */
function sinceWords({ new_runs, start }: Outlook): string {
  return start ? `${counted(new_runs, "rated run")} since ${start}` : counted(new_runs, "rated run");
}

interface LearnViewProps {
  name: string;
  onName(name: string): void;
  onJob(id: string): void;
}

/** What there is to learn from, and the button that does. */
export function LearnView({ name, onName, onJob }: LearnViewProps) {
  const outlook = useQuery(outlookQuery(name));
  return (
    <article className="learn" aria-label="Learn from rated runs">
      <header className="job-head">
        <h1>Learn from rated runs</h1>
        <p className="quiet">
          Runs on the same question that were judged differently, and what people corrected, become advice that a
          model’s prompt shows. No weights are needed. What comes of it is a candidate: nothing uses it before it is
          promoted.
        </p>
      </header>
      <ProblemNote error={outlook.error} onRetry={() => outlook.refetch()} />
      {outlook.data && <Counts outlook={outlook.data} onJob={onJob} />}
      <LearnForm name={name} outlook={outlook.data} onName={onName} onJob={onJob} />
    </article>
  );
}

function Counts({ outlook, onJob }: { outlook: Outlook; onJob(id: string): void }) {
  const { runs, new_runs, comparisons, withheld, start, waiting, job_id } = outlook;
  return (
    <>
      <dl className="figures num learn-figures">
        <Count name={start ? `rated runs since ${start}` : "rated runs"} value={new_runs} of={runs} />
        <Count name="comparisons that they allow, each one call" value={comparisons} />
      </dl>
      {withheld > 0 && (
        <p className="notice sun">
          {counted(withheld, "rated run")} of people {withheld === 1 ? "is" : "are"} left out. Switch on “Learn from my
          runs, ratings and corrections” in Settings to use {withheld === 1 ? "it" : "them"}.
        </p>
      )}
      {runs === 0 && withheld === 0 && (
        <p className="notice">
          Nothing was rated yet. Open a run’s report, and rate or correct it or one of its sentences.
        </p>
      )}
      {runs > 0 && comparisons === 0 && (
        <p className="quiet">
          Nothing to compare: that needs two runs on one question that were judged differently, or a correction.
        </p>
      )}
      {waiting && (
        <p className="quiet">
          {waiting} was learned from {start} already and waits to be promoted.
        </p>
      )}
      {job_id && (
        <p>
          <button type="button" className="linkish" onClick={() => onJob(job_id)}>
            A job is learning now
          </button>
        </p>
      )}
    </>
  );
}

/** The rest as the server has it by default; an engine that was not named is the installation's. */
function gateOn(dataset: string, reader: string, runUsd: string): NonNullable<LearnRequest["gate"]> {
  const engine = reader.trim() ? engineChoice(reader) : null;
  return {
    dataset,
    engine,
    graph: "agentflow",
    role: "planner",
    tasks: 50,
    members: 1,
    turns: 12,
    usd: runUsd.trim() ? Number(runUsd) : null,
  };
}

function Count({ name, value, of }: { name: string; value: number; of?: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {count(value)}
        {of !== undefined && of !== value && <span className="quiet"> of {count(of)}</span>}
      </dd>
    </div>
  );
}

function LearnForm({ name, outlook, onName, onJob }: LearnViewProps & { outlook: Outlook | undefined }) {
  const client = useQueryClient();
  const models = useQuery(enginesQuery).data?.filter(({ available }) => available) ?? [];
  const [library, setLibrary] = useState(name);
  const [engine, setEngine] = useState("");
  const [usd, setUsd] = useState("");
  const [dataset, setDataset] = useState("");
  const [reader, setReader] = useState("");
  const [runUsd, setRunUsd] = useState("");
  const [complaint, setComplaint] = useState("");
  const start = useMutation({
    mutationFn: () =>
      learn(name, {
        engine: engine.trim() ? engineChoice(engine) : null,
        graph: null,
        tag: null,
        groups: 50,
        cases: true,
        usd: usd.trim() ? Number(usd) : null,
        gate: dataset.trim() ? gateOn(dataset.trim(), reader || engine, runUsd) : null,
      }),
    onSuccess: (job) => {
      for (const key of ["training-jobs", "outlook"]) void client.invalidateQueries({ queryKey: [key] });
      onJob(job.id);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const wrong = [usd, runUsd].some((text) => text.trim() && !(Number(text) >= 0))
      ? "Give the spending limit as a number of dollars, such as 0.50."
      : "";
    setComplaint(wrong);
    if (!wrong) start.mutate();
  };
  return (
    <form className="learn-form" aria-label="Learn" onSubmit={submit}>
      <label>
        Prompt library
        <input
          className="field mono"
          value={library}
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,99}"
          required
          onChange={(event) => setLibrary(event.target.value)}
          onBlur={(event) => event.target.validity.valid && library !== name && onName(library)}
        />
        <small>Its versions are listed under this name.</small>
      </label>
      <label>
        Who compares
        <input
          className="field mono"
          list="learn-engines"
          value={engine}
          placeholder="the installation’s default"
          onChange={(event) => setEngine(event.target.value)}
        />
        <small>Such as litellm:openai/gpt-5-mini. “extractive” takes corrections over as they were written.</small>
      </label>
      <datalist id="learn-engines">
        {models.flatMap(({ name: one, models: own }) => {
          const [kind = one] = one.split(":");
          return (own.length === 0 ? [one] : own.map((model) => `${kind}:${model}`)).map((text) => (
            <option key={text} value={text} />
          ));
        })}
      </datalist>
      <label>
        Spend at most on comparing, $
        <input
          className="field num"
          inputMode="decimal"
          value={usd}
          placeholder="the day’s cap"
          onChange={(event) => setUsd(event.target.value)}
        />
      </label>
      <details className="library-fold">
        <summary>Measure it afterwards, on tasks that are held out</summary>
        <label>
          Dataset of stored tasks
          <input
            className="field mono"
            value={dataset}
            placeholder="none: it is not measured"
            onChange={(event) => setDataset(event.target.value)}
          />
          <small>
            Others than those learned from. The candidate and the active version do up to 50 of them each; the gate
            compares.
          </small>
        </label>
        <label>
          Who reads it there
          <input
            className="field mono"
            list="learn-engines"
            value={reader}
            placeholder="the one that compares"
            onChange={(event) => setReader(event.target.value)}
          />
        </label>
        <label>
          Spend at most on each of these runs, $
          <input
            className="field num"
            inputMode="decimal"
            value={runUsd}
            placeholder="the day’s cap"
            onChange={(event) => setRunUsd(event.target.value)}
          />
        </label>
      </details>
      <ProblemNote error={start.error} />
      {complaint && <p role="alert">{complaint}</p>}
      <button
        type="submit"
        className="btn primary"
        disabled={start.isPending || !outlook || outlook.new_groups === 0 || outlook.job_id !== null}
      >
        {start.isPending ? "Starting…" : "Learn"}
      </button>
    </form>
  );
}
