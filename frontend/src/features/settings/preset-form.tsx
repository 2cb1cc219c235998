import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { enginesQuery, type Graph, graphsQuery } from "@/shared/api/installation";
import { type Preset, providerModelsQuery, providersQuery, storePreset } from "@/shared/api/providers";
import { listEngineTexts } from "@/shared/model-setup/engine-text";
import { Button } from "@/shared/ui/button";
import { Combobox } from "@/shared/ui/combobox";
import { Field, Input, Select } from "@/shared/ui/field";
import { combineQueries, Failure, Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import {
  ALL_ROLES,
  DEPTH_LABELS,
  type Depth,
  type PresetDraft,
  roleLabel,
  toPresetDraft,
  toPresetRequest,
  validatePreset,
} from "./preset-text";
import styles from "./section.module.css";

interface PresetFormProps {
  /** The preset that is edited. A built-in one becomes one of the tenant. `null` means a new one. */
  preset: Preset | null;
  /** The presets whose names a new one cannot have. */
  taken: readonly Preset[];
  onClose(): void;
}

/** Name, models by role and limits of a preset. The roles are those of the selected graph. */
export function PresetForm({ preset, taken, onClose }: PresetFormProps) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => toPresetDraft(preset));
  const [problem, setProblem] = useState("");
  const change = (part: Partial<PresetDraft>) => setDraft((before) => ({ ...before, ...part }));
  const store = useMutation({
    mutationFn: () => storePreset(draft.name.trim(), toPresetRequest(draft, preset)),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["presets"] });
      onClose();
    },
  });
  const handleSubmit = (event: FormEvent) => {
    event.preventDefault();
    const isTaken = preset === null && taken.some(({ name }) => name === draft.name.trim());
    const found = validatePreset(draft, isTaken) ?? "";
    setProblem(found);
    if (!found) store.mutate();
  };
  return (
    <form
      className={styles.presetForm}
      aria-label={preset ? t`Edit the preset ${preset.name}` : t`New preset`}
      onSubmit={handleSubmit}
    >
      {preset === null && (
        <Field label={t`Name`}>
          {(control) => (
            <Input
              {...control}
              className="mono"
              spellCheck={false}
              value={draft.name}
              onChange={(event) => change({ name: event.target.value })}
            />
          )}
        </Field>
      )}
      <RoleFields engines={draft.engines} onChange={(engines) => change({ engines })} />
      <LimitFields draft={draft} onChange={change} />
      {problem && (
        <p className="notice coral" role="alert">
          {problem}
        </p>
      )}
      <ProblemNote error={store.error} />
      <div className={styles.rowActions}>
        <Button kind="primary" type="submit" disabled={store.isPending}>
          {store.isPending ? t`Storing…` : t`Store the preset`}
        </Button>
        <Button kind="plain" onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
      </div>
    </form>
  );
}

interface RoleFieldsProps {
  engines: PresetDraft["engines"];
  onChange(engines: PresetDraft["engines"]): void;
}

function RoleFields({ engines, onChange }: RoleFieldsProps) {
  const graphs = useQuery(graphsQuery);
  const [graphName, setGraphName] = useState("agentflow");
  const options = useModelOptions();
  return (
    <>
      <Loaded query={graphs} label={t`the graphs`}>
        {(loaded) => {
          const graph = loaded.find(({ name }) => name === graphName) ?? loaded[0];
          return (
            <>
              <Field
                label={t`Roles of the graph`}
                description={t`A preset serves all graphs. Roles that a graph does not have are ignored.`}
              >
                {(control) => (
                  <Select {...control} value={graph?.name ?? ""} onChange={(event) => setGraphName(event.target.value)}>
                    {loaded.map(({ name, title }) => (
                      <option key={name} value={name}>
                        {title || name}
                      </option>
                    ))}
                  </Select>
                )}
              </Field>
              <div className={styles.fields}>
                {listRoles(graph, engines).map((role) => (
                  <RoleField
                    key={role}
                    role={role}
                    isOptional={graph ? graph.optional_roles.includes(role) : false}
                    engine={engines[role] ?? ""}
                    options={options.data}
                    onChange={(engine) => onChange({ ...engines, [role]: engine })}
                  />
                ))}
              </div>
            </>
          );
        }}
      </Loaded>
      <Failure query={options} />
    </>
  );
}

/** Return the roles to show: all others, those of the graph, and those that the preset names for other graphs. */
function listRoles(graph: Graph | undefined, engines: PresetDraft["engines"]): string[] {
  const own = graph ? [...graph.roles, ...graph.optional_roles] : [];
  return [...new Set([ALL_ROLES, ...own, ...Object.keys(engines)])];
}

interface RoleFieldProps {
  role: string;
  /** Such a role is asked only if the preset names a model for it. */
  isOptional: boolean;
  engine: string;
  /** `undefined` means that the models are not loaded yet. */
  options: readonly string[] | undefined;
  onChange(engine: string): void;
}

/** Maximum number of suggestions at a time. */
const MAX_OPTIONS = 50;

function RoleField({ role, isOptional, engine, options, onChange }: RoleFieldProps) {
  const matching = options
    ? options.filter((option) => option.toLowerCase().includes(engine.trim().toLowerCase()))
    : [];
  const isExact = options ? options.includes(engine.trim()) : false;
  const suggestions = isExact && options ? options : matching;
  const placeholder = role === ALL_ROLES ? t`Choose a model` : isOptional ? t`not asked` : t`as all other roles`;
  return (
    <Combobox
      label={roleLabel(role)}
      options={suggestions.slice(0, MAX_OPTIONS)}
      value={engine}
      placeholder={placeholder}
      onChange={onChange}
    />
  );
}

/** The models of the stored providers and of the environment, as options of a field. */
function useModelOptions() {
  const engines = useQuery(enginesQuery);
  const providers = useQuery(providersQuery);
  const names = providers.data ? providers.data.map(({ name }) => name) : [];
  const models = useQueries({
    queries: names.map((name) => providerModelsQuery(name)),
    combine: (results) => ({
      data: results.every(({ data, error }) => data || error)
        ? results.flatMap(({ data }, at) => (data ? data.items.map((model) => `${names[at]}/${model.name}`) : []))
        : undefined,
      error: results.find(({ error }) => error)?.error ?? null,
      fetchStatus: "idle" as const,
      refetch: () => Promise.all(results.map((result) => result.refetch())),
    }),
  });
  const all = combineQueries({ engines, providers, models });
  return {
    ...all,
    data: all.data && [...new Set([...all.data.models, ...listEngineTexts(all.data.engines)])],
  };
}

interface LimitFieldsProps {
  draft: PresetDraft;
  onChange(part: Partial<PresetDraft>): void;
}

/** Limits that a run has unless its question names others. */
function LimitFields({ draft, onChange }: LimitFieldsProps) {
  const numbers = [
    { key: "turns", label: t`Maximum turns` },
    { key: "usd", label: t`Maximum cost, $` },
    { key: "minutes", label: t`Maximum time, minutes` },
  ] as const;
  return (
    <div className={styles.fields}>
      <Field label={t`Depth`}>
        {(control) => (
          <Select
            {...control}
            value={draft.depth}
            onChange={(event) => onChange({ depth: event.target.value as Depth | "" })}
          >
            <option value="">{t`as the question says`}</option>
            {Object.entries(DEPTH_LABELS).map(([depth, label]) => (
              <option key={depth} value={depth}>
                {i18n._(label)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {numbers.map(({ key, label }) => (
        <Field key={key} label={label}>
          {(control) => (
            <Input
              {...control}
              className="num"
              inputMode="decimal"
              placeholder={t`no limit`}
              value={draft[key]}
              onChange={(event) => onChange({ [key]: event.target.value })}
            />
          )}
        </Field>
      ))}
    </div>
  );
}
