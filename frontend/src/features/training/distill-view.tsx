import { plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { enginesQuery, parseEngineConfig } from "@/shared/api/installation";
import {
  type DistillationPreview,
  type DistillationRequest,
  distillationPreviewQuery,
  startDistillation,
} from "@/shared/api/training";
import { joinList } from "@/shared/format/lists";
import { formatCount } from "@/shared/format/numbers";
import { useDraft } from "@/shared/ui/drafts";
import { Failure, Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import "./distillation.css";

/** Opens the distillation form and shows the number of new rated runs. */
export function DistillRow({ name, current, onPick }: { name: string; current: boolean; onPick(): void }) {
  const preview = useQuery(distillationPreviewQuery(name));
  return (
    <ul>
      <li>
        <button type="button" className="rail-row" aria-current={current ? "true" : undefined} onClick={onPick}>
          <span className="rail-name">
            <Trans>Distill rated runs</Trans>
          </span>
          {preview.data && <span className="rail-facts num">{describeNewRuns(preview.data)}</span>}
          {preview.error && !preview.data && (
            <span className="rail-facts">
              <Trans>the number could not be loaded</Trans>
            </span>
          )}
        </button>
      </li>
    </ul>
  );
}

/** Return text such as `4 rated runs and 8 scored rollouts since lessons@1`. */
function describeNewRuns({ new_runs, new_rated_runs, start_version: start }: DistillationPreview): string {
  const scored = new_runs - new_rated_runs;
  const ratedRuns = plural(new_rated_runs, { one: "# rated run", other: "# rated runs" });
  const scoredRollouts = plural(scored, { one: "# scored rollout", other: "# scored rollouts" });
  const runs = scored > 0 ? joinList([ratedRuns, scoredRollouts]) : ratedRuns;
  return start ? t`${runs} since ${start}` : runs;
}

interface DistillViewProps {
  name: string;
  onName(name: string): void;
  onJob(id: string): void;
}

/** What a distillation job would use, and a form that starts one. */
export function DistillView({ name, onName, onJob }: DistillViewProps) {
  const preview = useQuery(distillationPreviewQuery(name));
  return (
    <article className="distill" aria-label={t`Distill rated runs`}>
      <header className="job-head">
        <h1>
          <Trans>Distill rated runs</Trans>
        </h1>
        <p className="quiet">
          <Trans>
            A distillation job compares runs on the same question that were rated or scored differently, reads the
            corrections by people, and writes experiences that are added to a model’s prompt. No weights are needed. The
            result is a candidate version: no run uses it until it is promoted.
          </Trans>
        </p>
      </header>
      <Loaded query={preview} label={t`the preview`}>
        {(loaded) => <PreviewCounts preview={loaded} onJob={onJob} />}
      </Loaded>
      <DistillForm name={name} preview={preview.data} onName={onName} onJob={onJob} />
    </article>
  );
}

function PreviewCounts({ preview, onJob }: { preview: DistillationPreview; onJob(id: string): void }) {
  const {
    runs,
    rated_runs,
    new_runs,
    new_rated_runs,
    comparisons,
    withheld_runs: withheld,
    start_version: start,
    waiting_candidate: waiting,
    job_id,
  } = preview;

  return (
    <>
      <dl className="metrics num distill-metrics">
        <Count name={start ? t`rated runs since ${start}` : t`rated runs`} value={new_rated_runs} of={rated_runs} />
        {runs > rated_runs && (
          <Count
            name={start ? t`scored rollouts since ${start}` : t`scored rollouts`}
            value={new_runs - new_rated_runs}
            of={runs - rated_runs}
          />
        )}
        <Count name={t`possible comparisons, one call each`} value={comparisons} />
      </dl>
      {withheld > 0 && (
        <p className="notice sun">
          <Plural
            value={withheld}
            one="# rated run of users is excluded. Turn on “Use my runs, ratings and corrections for training” in Settings to use it."
            other="# rated runs of users are excluded. Turn on “Use my runs, ratings and corrections for training” in Settings to use them."
          />
        </p>
      )}
      {runs === 0 && withheld === 0 && (
        <p className="notice">
          <Trans>
            No run has been rated or scored yet. Open the report of a run, and rate or correct it or one of its
            sentences.
          </Trans>
        </p>
      )}
      {runs > 0 && comparisons === 0 && (
        <p className="quiet">
          <Trans>
            There is nothing to compare. A comparison needs two runs on the same question with different ratings, or a
            correction.
          </Trans>
        </p>
      )}
      {waiting && (
        <p className="quiet">
          <Trans>
            {waiting} was already distilled from {start} and is waiting to be promoted.
          </Trans>
        </p>
      )}
      {job_id && (
        <p>
          <button type="button" className="linkish" onClick={() => onJob(job_id)}>
            <Trans>A distillation job is running</Trans>
          </button>
        </p>
      )}
    </>
  );
}

/**
 * Build the gate of the request. The other values are the server's defaults; without a named engine, the installation's
 * default is used.
 */
function buildGate(
  dataset: string,
  evaluationEngine: string,
  runUsd: string,
): NonNullable<DistillationRequest["gate"]> {
  const engine = evaluationEngine.trim() ? parseEngineConfig(evaluationEngine) : null;
  return {
    dataset,
    engine,
    graph: "agentflow",
    role: "planner",
    max_tasks: 50,
    rollouts_per_task: 1,
    max_turns: 12,
    max_run_cost_usd: runUsd.trim() ? Number(runUsd) : null,
  };
}

function Count({ name, value, of }: { name: string; value: number; of?: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {formatCount(value)}
        {of !== undefined && of !== value && (
          <span className="quiet">
            {" "}
            <Trans>of {formatCount(of)}</Trans>
          </span>
        )}
      </dd>
    </div>
  );
}

const EMPTY_FORM = { engine: "", usd: "", dataset: "", evaluationEngine: "", runUsd: "" };

function DistillForm({
  name,
  preview,
  onName,
  onJob,
}: DistillViewProps & { preview: DistillationPreview | undefined }) {
  const client = useQueryClient();
  const engines = useQuery(enginesQuery);
  const [nameText, setNameText] = useState(name);
  const [form, setForm] = useDraft(`distill.${name}`, EMPTY_FORM);
  const { engine, usd, dataset, evaluationEngine, runUsd } = form;
  const updateForm = (part: Partial<typeof EMPTY_FORM>) => setForm({ ...form, ...part });
  const [validationError, setValidationError] = useState("");
  const start = useMutation({
    mutationFn: () =>
      startDistillation(name, {
        engine: engine.trim() ? parseEngineConfig(engine) : null,
        graph: null,
        tag: null,
        max_groups: 50,
        include_cases: true,
        max_cost_usd: usd.trim() ? Number(usd) : null,
        gate: dataset.trim() ? buildGate(dataset.trim(), evaluationEngine || engine, runUsd) : null,
      }),
    onSuccess: (job) => {
      setForm(EMPTY_FORM);
      for (const key of ["training-jobs", "distillation-preview"]) void client.invalidateQueries({ queryKey: [key] });
      onJob(job.id);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const error = [usd, runUsd].some((text) => text.trim() && !(Number(text) >= 0))
      ? t`Enter the maximum cost as a number of dollars, such as 0.50.`
      : "";
    setValidationError(error);
    if (!error) start.mutate();
  };
  return (
    <form className="distill-form" aria-label={t`Distill`} onSubmit={submit}>
      <label>
        <Trans>Prompt library</Trans>
        <input
          className="field mono"
          value={nameText}
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,99}"
          required
          onChange={(event) => setNameText(event.target.value)}
          onBlur={(event) => event.target.validity.valid && nameText !== name && onName(nameText)}
        />
        <small>
          <Trans>Its versions are listed under this name.</Trans>
        </small>
      </label>
      <label>
        <Trans>Engine for comparisons</Trans>
        <input
          className="field mono"
          list="distill-engines"
          value={engine}
          placeholder={t`default of this installation`}
          onChange={(event) => updateForm({ engine: event.target.value })}
        />
        <small>
          <Trans>For example litellm:openai/gpt-5-mini. “extractive” copies corrections unchanged.</Trans>
        </small>
      </label>
      <datalist id="distill-engines">
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
        <Trans>Maximum cost of comparisons, $</Trans>
        <input
          className="field num"
          inputMode="decimal"
          value={usd}
          placeholder={t`daily spending limit`}
          onChange={(event) => updateForm({ usd: event.target.value })}
        />
      </label>
      <details className="prompt-library-details">
        <summary>
          <Trans>Evaluate on held-out tasks afterwards</Trans>
        </summary>
        <label>
          <Trans>Dataset of stored tasks</Trans>
          <input
            className="field mono"
            value={dataset}
            placeholder={t`none: no evaluation`}
            onChange={(event) => updateForm({ dataset: event.target.value })}
          />
          <small>
            <Trans>
              Tasks that were not used for distillation. The candidate and the active version each run up to 50 of them,
              and the gate compares the results.
            </Trans>
          </small>
        </label>
        <label>
          <Trans>Engine for evaluation</Trans>
          <input
            className="field mono"
            list="distill-engines"
            value={evaluationEngine}
            placeholder={t`engine for comparisons`}
            onChange={(event) => updateForm({ evaluationEngine: event.target.value })}
          />
        </label>
        <label>
          <Trans>Maximum cost of each evaluation run, $</Trans>
          <input
            className="field num"
            inputMode="decimal"
            value={runUsd}
            placeholder={t`daily spending limit`}
            onChange={(event) => updateForm({ runUsd: event.target.value })}
          />
        </label>
      </details>
      <ProblemNote error={start.error} />
      {validationError && <p role="alert">{validationError}</p>}
      <button
        type="submit"
        className="btn primary"
        disabled={start.isPending || !preview || preview.new_groups === 0 || preview.job_id !== null}
      >
        {start.isPending ? t`Starting…` : t`Distill`}
      </button>
    </form>
  );
}
