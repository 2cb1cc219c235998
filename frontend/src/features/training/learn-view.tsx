import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { engineChoice, enginesQuery } from "@/shared/api/catalog";
import { type LearnRequest, learn, type Outlook, outlookQuery } from "@/shared/api/training";
import { count, counted } from "@/shared/format/numbers";
import { useDraft } from "@/shared/ui/drafts";
import { Failure, Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import "./learning.css";

/** How many rated runs wait to be learned from. */
export function LearnRow({ name, current, onPick }: { name: string; current: boolean; onPick(): void }) {
  const outlook = useQuery(outlookQuery(name));
  return (
    <ul>
      <li>
        <button type="button" className="rail-row" aria-current={current ? "true" : undefined} onClick={onPick}>
          <span className="rail-name">Learn from rated runs</span>
          {outlook.data && <span className="rail-facts num">{sinceWords(outlook.data)}</span>}
          {outlook.error && !outlook.data && <span className="rail-facts">their number could not be loaded</span>}
        </button>
      </li>
    </ul>
  );
}

/** `4 rated runs and 8 scored rollouts since lessons@1`. */
function sinceWords({ new_runs, new_rated_runs, start }: Outlook): string {
  const scored = new_runs - new_rated_runs;
  const runs = counted(new_rated_runs, "rated run") + (scored > 0 ? ` and ${counted(scored, "scored rollout")}` : "");
  return start ? `${runs} since ${start}` : runs;
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
          Runs on the same question that were rated or scored differently, and what people corrected, become advice that
          a model’s prompt shows. No weights are needed. What comes of it is a candidate: nothing uses it before it is
          promoted.
        </p>
      </header>
      <Loaded query={outlook} what="what there is to learn from">
        {(known) => <Counts outlook={known} onJob={onJob} />}
      </Loaded>
      <LearnForm name={name} outlook={outlook.data} onName={onName} onJob={onJob} />
    </article>
  );
}

function Counts({ outlook, onJob }: { outlook: Outlook; onJob(id: string): void }) {
  const { runs, rated_runs, new_runs, new_rated_runs, comparisons, withheld, start, waiting, job_id } = outlook;
  const since = start && ` since ${start}`;
  return (
    <>
      <dl className="figures num learn-figures">
        <Count name={`rated runs${since}`} value={new_rated_runs} of={rated_runs} />
        {runs > rated_runs && (
          <Count name={`scored rollouts${since}`} value={new_runs - new_rated_runs} of={runs - rated_runs} />
        )}
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
          Nothing has been rated or scored yet. Open a run’s report, and rate or correct it or one of its sentences.
        </p>
      )}
      {runs > 0 && comparisons === 0 && (
        <p className="quiet">
          Nothing to compare: that needs two runs on one question that were rated differently, or a correction.
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

const NOTHING_TYPED = { engine: "", usd: "", dataset: "", reader: "", runUsd: "" };

function LearnForm({ name, outlook, onName, onJob }: LearnViewProps & { outlook: Outlook | undefined }) {
  const client = useQueryClient();
  const engines = useQuery(enginesQuery);
  const [library, setLibrary] = useState(name);
  const [typed, setTyped] = useDraft(`learn.${name}`, NOTHING_TYPED);
  const { engine, usd, dataset, reader, runUsd } = typed;
  const type = (part: Partial<typeof NOTHING_TYPED>) => setTyped({ ...typed, ...part });
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
      setTyped(NOTHING_TYPED);
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
          onChange={(event) => type({ engine: event.target.value })}
        />
        <small>Such as litellm:openai/gpt-5-mini. “extractive” takes corrections over as they were written.</small>
      </label>
      <datalist id="learn-engines">
        {engines.data
          ?.filter(({ available }) => available)
          .flatMap(({ name: one, models: own }) => {
            const [kind = one] = one.split(":");
            return (own.length === 0 ? [one] : own.map((model) => `${kind}:${model}`)).map((text) => (
              <option key={text} value={text} />
            ));
          })}
      </datalist>
      <Failure query={engines} />
      <label>
        Spend at most on comparing, $
        <input
          className="field num"
          inputMode="decimal"
          value={usd}
          placeholder="the day’s cap"
          onChange={(event) => type({ usd: event.target.value })}
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
            onChange={(event) => type({ dataset: event.target.value })}
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
            onChange={(event) => type({ reader: event.target.value })}
          />
        </label>
        <label>
          Spend at most on each of these runs, $
          <input
            className="field num"
            inputMode="decimal"
            value={runUsd}
            placeholder="the day’s cap"
            onChange={(event) => type({ runUsd: event.target.value })}
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
