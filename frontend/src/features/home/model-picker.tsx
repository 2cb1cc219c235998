import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { type Engine, enginesQuery, graphsQuery, listEngineOptions, tenantQuery } from "@/shared/api/installation";
import { presetsQuery, providersQuery } from "@/shared/api/providers";
import { offerText } from "@/shared/texts/offer-texts";
import { Field, Input } from "@/shared/ui/field";
import { combineQueries, Failure, Loaded } from "@/shared/ui/loaded";
import { filterChoices, findChoice, listModelChoices, type ModelChoice, withoutRepeated } from "./models";
import styles from "./options.module.css";
import { FieldError, type OptionsProps, Section } from "./options-section";
import { listRoleEngines } from "./settings";

/** Maximum number of models that are shown. Typing narrows the list. */
const MAX_SHOWN = 12;

/** The model of all roles, from presets and engines with what they cost, or typed; and of single roles. */
export function ModelPicker({ settings, errors, onChange }: OptionsProps) {
  const [search, setSearch] = useState("");
  const engines = useQuery(enginesQuery);
  const presets = useQuery(presetsQuery);
  const providers = useQuery(providersQuery);
  const tenant = useQuery(tenantQuery);
  const query = combineQueries({ engines, presets, providers, tenant });
  const select = (choice: ModelChoice) => {
    onChange({ preset: choice.preset, engine: choice.engine, ...(choice.turns ? { turns: choice.turns } : {}) });
    setSearch("");
  };
  return (
    <Section title={t`Model`}>
      <Loaded query={query} label={t`the models`}>
        {(data) => {
          const choices = listModelChoices(data);
          const selected = findChoice(choices, settings.preset, settings.engine);
          return (
            <ModelList choices={choices} selected={selected} search={search} onSearch={setSearch} onSelect={select} />
          );
        }}
      </Loaded>
      <FieldError text={errors.engine ?? errors.preset} />
      {engines.data && <UnavailableEngines engines={engines.data} />}
      <RoleModels settings={settings} errors={errors} onChange={onChange} />
    </Section>
  );
}

interface ModelListProps {
  choices: readonly ModelChoice[];
  selected: ModelChoice;
  search: string;
  onSearch(text: string): void;
  onSelect(choice: ModelChoice): void;
}

/** The selected model comes first, so that it can always be seen. A text that is in no list can be selected too. */
function ModelList({ choices, selected, search, onSearch, onSelect }: ModelListProps) {
  const name = useId();
  const matching = filterChoices(withoutRepeated(choices), search).filter(({ id }) => id !== selected.id);
  const shown = [selected, ...matching.slice(0, MAX_SHOWN)];
  const typed = search.trim();
  const canBeTyped = typed !== "" && !choices.some(({ engine }) => engine === typed);
  return (
    <>
      <Field
        label={t`Find a model, or enter one`}
        description={t`Such as extractive, or litellm:provider/model for a model that is not listed.`}
      >
        {(control) => (
          <Input
            {...control}
            type="search"
            autoComplete="off"
            spellCheck={false}
            value={search}
            onChange={(event) => onSearch(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              if (canBeTyped) onSelect(findChoice(choices, "", typed));
            }}
          />
        )}
      </Field>
      <div className={styles.models} role="radiogroup" aria-label={t`Model`}>
        {shown.map((choice) => (
          <label key={choice.id} className={styles.choice}>
            <input type="radio" name={name} checked={choice.id === selected.id} onChange={() => onSelect(choice)} />
            <span>
              <b dir="auto">{choice.title}</b>
              {choice.note && <span className={styles.note}>{choice.note}</span>}
              {choice.facts.length > 0 && <span className={styles.fact}>{choice.facts.join(" · ")}</span>}
            </span>
          </label>
        ))}
        {canBeTyped && (
          <button type="button" className="btn small" onClick={() => onSelect(findChoice(choices, "", typed))}>
            <Trans>Use “{typed}”</Trans>
          </button>
        )}
      </div>
      {matching.length > MAX_SHOWN && (
        <p className={styles.note}>
          {plural(matching.length - MAX_SHOWN, {
            one: "# more. Type a part of its name to find it.",
            other: "# more. Type a part of a name to find them.",
          })}
        </p>
      )}
    </>
  );
}

/** Engines that need to be set up first, with what to do. */
function UnavailableEngines({ engines }: { engines: readonly Engine[] }) {
  const unavailable = engines.filter(({ available }) => !available);
  if (unavailable.length === 0) return null;
  return (
    <details className={styles.details}>
      <summary>
        <Trans>{unavailable.length} more can be set up</Trans>
      </summary>
      {unavailable.map((engine) => (
        <p key={engine.name} className={styles.note}>
          <b>{engine.name}</b>: {offerText(engine.note, engine.texts.note)}
        </p>
      ))}
    </details>
  );
}

/** Engines of single roles, for people who want a small model for simple roles. */
function RoleModels({ settings, onChange }: OptionsProps) {
  const graphs = useQuery(graphsQuery);
  const engines = useQuery(enginesQuery);
  const graph = graphs.data?.find(({ name }) => name === settings.graph);
  const roles = graph ? [...graph.roles, ...graph.optional_roles] : [];
  const count = listRoleEngines(settings).length;
  return (
    <details className={styles.details} open={count > 0 || undefined}>
      <summary>
        <Trans>Another model for single roles</Trans>
      </summary>
      <Failure query={combineQueries({ graphs, engines })} />
      <datalist id="role-engine-options">
        {engines.data && listEngineOptions(engines.data).map((option) => <option key={option} value={option} />)}
      </datalist>
      <div className={styles.row}>
        {roles.map((role) => (
          <Field
            key={role}
            label={role}
            description={graph?.optional_roles.includes(role) ? t`Used only if it has a model here.` : undefined}
          >
            {(control) => (
              <Input
                {...control}
                list="role-engine-options"
                autoComplete="off"
                spellCheck={false}
                value={settings.roleEngines[role] ?? ""}
                placeholder={t`as above`}
                onChange={(event) => onChange({ roleEngines: { ...settings.roleEngines, [role]: event.target.value } })}
              />
            )}
          </Field>
        ))}
      </div>
    </details>
  );
}
