import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { graphsQuery, mcpServersQuery } from "@/shared/api/installation";
import { checkToolPolicy, putToolPolicy, type ToolPolicyCheck, toolPoliciesQuery } from "@/shared/api/settings";
import { graphTitle } from "@/shared/texts/offer-texts";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { deleteDraft, useDraft } from "@/shared/ui/drafts";
import { Checkbox, Field, Input, Select } from "@/shared/ui/field";
import { combineQueries, Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./installation.module.css";
import { Decisions } from "./policy-decisions";
import { EXAMPLE_CALLS, EXAMPLE_NAME, EXAMPLE_POLICY, parseCalls } from "./sample-calls";

/** A stored policy that is edited. */
export interface Opened {
  name: string;
  text: string;
}

interface Draft {
  name: string;
  text: string;
  calls: string;
  graph: string;
  web: boolean;
  code: boolean;
  mcp: string[];
}

/** Writes a tool policy, checks it, decides sample calls and stores it. */
export function PolicyEditor({ opened }: { opened: Opened | null }) {
  const initial: Draft = {
    name: opened?.name ?? "",
    text: opened?.text ?? EXAMPLE_POLICY,
    calls: EXAMPLE_CALLS,
    graph: "agentflow",
    web: true,
    code: false,
    mcp: [],
  };
  const draftKey = `tool-policy:${opened?.name ?? ""}`;
  const [draft, setDraft] = useDraft(draftKey, initial);
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const calls = parseCalls(draft.calls);
  const check = useMutation({
    mutationFn: () =>
      checkToolPolicy({
        text: draft.text,
        graph: draft.graph,
        scope: { web: draft.web, code: draft.code, mcp: draft.mcp },
        calls: calls.calls,
      }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!calls.problem) check.mutate();
  };
  return (
    <Panel title={opened ? t`Edit ${opened.name}` : t`Try a tool policy`} level={3}>
      <form className={styles.stack} onSubmit={submit}>
        <Field label={t`Tool policy, as JSON`}>
          {(control) => (
            <textarea
              {...control}
              className={`field ${styles.editor}`}
              dir="ltr"
              spellCheck={false}
              value={draft.text}
              onChange={(event) => change({ text: event.target.value })}
            />
          )}
        </Field>
        <RunFields draft={draft} onChange={change} />
        <Field
          label={t`Sample calls`}
          description={t`One call per line: the name of the tool, and its arguments as JSON.`}
          error={calls.problem}
        >
          {(control) => (
            <textarea
              {...control}
              className={`field ${styles.code}`}
              rows={4}
              dir="ltr"
              spellCheck={false}
              value={draft.calls}
              onChange={(event) => change({ calls: event.target.value })}
            />
          )}
        </Field>
        <div className={styles.actions}>
          <Button type="submit" kind="primary" disabled={calls.problem !== "" || check.isPending}>
            {check.isPending ? t`Checking…` : t`Check and try`}
          </Button>
        </div>
        <ProblemNote error={check.error} />
      </form>
      {check.data && <CheckResult check={check.data} />}
      <StorePolicy draft={draft} onName={(name) => change({ name })} onStored={() => deleteDraft(draftKey)} />
    </Panel>
  );
}

/** What the run may use, because the tools that a policy can name depend on it. */
function RunFields({ draft, onChange }: { draft: Draft; onChange(part: Partial<Draft>): void }) {
  const graphList = useQuery(graphsQuery);
  const mcpServers = useQuery(mcpServersQuery);
  const queries = combineQueries({ graphs: graphList, servers: mcpServers });
  const toggle = (name: string, on: boolean) =>
    onChange({ mcp: on ? [...draft.mcp, name] : draft.mcp.filter((one) => one !== name) });
  return (
    <Loaded query={queries} label={t`the graphs`}>
      {({ graphs, servers }) => (
        <fieldset className={styles.inline}>
          <legend className={styles.note}>
            <Trans>For a run of this kind</Trans>
          </legend>
          <Field label={t`Graph`}>
            {(control) => (
              <Select {...control} value={draft.graph} onChange={(event) => onChange({ graph: event.target.value })}>
                {graphs.map((graph) => (
                  <option key={graph.name} value={graph.name}>
                    {graphTitle(graph)}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Checkbox label={t`Web`} checked={draft.web} onChange={(web) => onChange({ web })} />
          <Checkbox label={t`Code`} checked={draft.code} onChange={(code) => onChange({ code })} />
          {servers.map(({ name }) => (
            <Checkbox key={name} label={name} checked={draft.mcp.includes(name)} onChange={(on) => toggle(name, on)} />
          ))}
        </fieldset>
      )}
    </Loaded>
  );
}

function CheckResult({ check }: { check: ToolPolicyCheck }) {
  return (
    <div className={styles.result}>
      <p role="status">
        {check.issues.length === 0 ? (
          <Badge tone="moss">{t`A run can be submitted with it`}</Badge>
        ) : (
          <Badge tone="coral">{plural(check.issues.length, { one: "# finding", other: "# findings" })}</Badge>
        )}
      </p>
      {check.issues.length > 0 && (
        <ul className={styles.list} aria-label={t`Findings`}>
          {check.issues.map(({ rule, field, problem, remedy }) => (
            <li key={`${field} ${problem}`} className={styles.row}>
              <div className={styles.head}>
                <span className={styles.code}>{field}</span>
                {rule && <span className={styles.note}>{rule}</span>}
              </div>
              <span className={styles.problem} dir="auto">
                {problem}
              </span>
              <span dir="auto">{remedy}</span>
            </li>
          ))}
        </ul>
      )}
      {check.decisions.length > 0 && <Decisions decisions={check.decisions} />}
      <details>
        <summary>
          <Trans>Tools of this run</Trans>
        </summary>
        <ul className={styles.list}>
          {check.tools.map(({ name, description, arguments: schema, sends_data_out, changes_something }) => (
            <li key={name} className={styles.row}>
              <div className={styles.head}>
                <span className={styles.code}>
                  {name}({listArguments(schema).join(", ")})
                </span>
                {sends_data_out && <Badge tone="sun">{t`sends data out`}</Badge>}
                {changes_something && <Badge tone="sun">{t`has side effects`}</Badge>}
              </div>
              <span className={styles.note} dir="auto">
                {description}
              </span>
            </li>
          ))}
        </ul>
      </details>
    </div>
  );
}

/** Return the names of the arguments in a JSON schema. Pure. */
function listArguments(schema: Record<string, unknown>): string[] {
  const { properties } = schema;
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}

interface StoreProps {
  draft: Draft;
  onName(name: string): void;
  onStored(): void;
}

function StorePolicy({ draft, onName, onStored }: StoreProps) {
  const client = useQueryClient();
  const [jsonProblem, setJsonProblem] = useState("");
  const store = useMutation({
    mutationFn: (policy: unknown) => putToolPolicy(draft.name.trim(), policy),
    onSuccess: () => {
      onStored();
      return client.invalidateQueries({ queryKey: toolPoliciesQuery.queryKey });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    try {
      const policy: unknown = JSON.parse(draft.text);
      setJsonProblem("");
      store.mutate(policy);
    } catch {
      // The check says where the text is wrong.
      setJsonProblem(t`The text is not valid JSON. Check it first.`);
    }
  };
  return (
    <form className={styles.inline} onSubmit={submit}>
      <Field label={t`Store as`} error={jsonProblem}>
        {(control) => (
          <Input
            {...control}
            maxLength={64}
            placeholder={EXAMPLE_NAME}
            value={draft.name}
            onChange={(event) => onName(event.target.value)}
          />
        )}
      </Field>
      <Button type="submit" disabled={!draft.name.trim() || store.isPending}>
        {store.isPending ? t`Storing…` : t`Store`}
      </Button>
      {store.isSuccess && (
        <span role="status">
          <Badge tone="moss">{t`stored`}</Badge>
        </span>
      )}
      <ProblemNote error={store.error} />
    </form>
  );
}
