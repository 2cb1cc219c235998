import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useRef } from "react";
import { enginesQuery, graphsQuery, listEngineOptions } from "@/shared/api/installation";
import { type ForkRequest, forkRun, type Run, runQuery } from "@/shared/api/runs";
import { useNavigate } from "@/shared/routing/routing";
import { randomId } from "@/shared/stream/browser";
import { Button } from "@/shared/ui/button";
import { useDraft } from "@/shared/ui/drafts";
import { Field, Input, Select } from "@/shared/ui/field";
import { Failure, Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./fork-form.module.css";
import { buildFork, type ForkFields, fieldsOfRun, validateFork } from "./fork-request";

interface ForkFormProps {
  runId: string;
  at: number;
  message: string;
  onClose(): void;
}

/** A fork with another message, budget or engine. What is typed stays until the fork is created. */
export function ForkForm(props: ForkFormProps) {
  const run = useQuery(runQuery(props.runId));
  return (
    <Loaded query={run} label={t`the run`}>
      {(loaded) => <LoadedForm {...props} run={loaded} />}
    </Loaded>
  );
}

/** Creates the fork and opens it. The idempotency key stays the same until the request changes, so that a retry creates no second fork. */
function useFork(runId: string, onCreated: () => void) {
  const navigate = useNavigate();
  const last = useRef({ text: "", key: "" });
  return useMutation({
    mutationFn: (request: ForkRequest) => {
      const text = JSON.stringify(request);
      if (last.current.text !== text) last.current = { text, key: randomId() };
      return forkRun(runId, request, last.current.key);
    },
    onSuccess: (created) => {
      last.current = { text: "", key: "" };
      onCreated();
      return navigate({ to: "/runs/$runId", params: { runId: created.id }, search: {} });
    },
  });
}

function LoadedForm({ run, at, message, onClose }: ForkFormProps & { run: Run }) {
  const graphs = useQuery(graphsQuery);
  const engines = useQuery(enginesQuery);
  const initial = fieldsOfRun(run, message);
  const [fields, setFields] = useDraft<ForkFields>(`fork.${run.id}.${at}`, initial);
  const fork = useFork(run.id, () => setFields(initial));
  const graph = graphs.data?.find(({ name }) => name === run.graph);
  const roles = graph ? graph.roles : Object.keys(run.engines);
  const problem = validateFork(fields);
  const change = (part: Partial<ForkFields>) => setFields({ ...fields, ...part });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!problem) fork.mutate(buildFork(run, roles, at, fields));
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <p className="quiet">
        <Trans>
          A new run copies the steps up to {at} and continues there. They are not repeated or charged again. This run
          does not change.
        </Trans>
      </p>
      <Field label={t`Message to its planner`} description={t`Empty: the fork continues without one.`}>
        {(control) => (
          <textarea
            {...control}
            dir="auto"
            className="field"
            rows={3}
            maxLength={4000}
            value={fields.message}
            onChange={(event) => change({ message: event.target.value })}
          />
        )}
      </Field>
      <div className={styles.row}>
        <NumberField label={t`Turns`} value={fields.turns} onChange={(turns) => change({ turns })} />
        <NumberField label={t`Maximum cost, $`} value={fields.usd} onChange={(usd) => change({ usd })} />
        <NumberField
          label={t`Maximum time, minutes`}
          value={fields.minutes}
          onChange={(minutes) => change({ minutes })}
        />
      </div>
      <div className={styles.row}>
        <Field label={t`Role`}>
          {(control) => (
            <Select {...control} value={fields.role} onChange={(event) => change({ role: event.target.value })}>
              <option value="">{t`every role`}</option>
              {roles.map((role) => (
                <option key={role} value={role}>
                  {role}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={t`Engine from here on`} description={t`Empty: the engines stay.`}>
          {(control) => (
            <Input
              {...control}
              list="fork-engines"
              autoComplete="off"
              spellCheck={false}
              value={fields.engine}
              onChange={(event) => change({ engine: event.target.value })}
            />
          )}
        </Field>
        <datalist id="fork-engines">
          {engines.data && listEngineOptions(engines.data).map((option) => <option key={option} value={option} />)}
        </datalist>
      </div>
      <Failure query={graphs} />
      <Failure query={engines} />
      {problem && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      <ProblemNote error={fork.error} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Close</Trans>
        </Button>
        <Button kind="primary" type="submit" disabled={fork.isPending || problem !== null}>
          {fork.isPending ? t`Forking…` : t`Create the fork`}
        </Button>
      </div>
    </form>
  );
}

function NumberField({ label, value, onChange }: { label: string; value: string; onChange(value: string): void }) {
  return (
    <Field label={label}>
      {(control) => (
        <Input
          {...control}
          inputMode="decimal"
          placeholder={t`no limit`}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
