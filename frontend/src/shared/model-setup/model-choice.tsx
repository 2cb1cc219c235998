import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { type ProviderModel, providerModelsQuery } from "../api/providers";
import { useDebounced } from "../ui/hooks";
import { Loaded } from "../ui/loaded";
import { ModelFacts, UnknownFacts } from "./model-facts";
import styles from "./model-setup.module.css";

interface ModelChoiceProps {
  provider: string;
  isOwnServer: boolean;
  /** Names that are listed first. */
  suggested: readonly string[];
  /** Name of the chosen model at the provider. Empty means none. */
  chosen: string;
  onChoose(model: string): void;
}

/** Maximum number of models that are shown. A search finds the others. */
const MAX_SHOWN = 12;

/** The models of a stored provider. A model that is not in the list can be named too. */
export function ModelChoice({ provider, isOwnServer, suggested, chosen, onChoose }: ModelChoiceProps) {
  const [search, setSearch] = useState("");
  const searched = useDebounced(search.trim(), 250);
  const models = useQuery({ ...providerModelsQuery(provider, searched), placeholderData: keepPreviousData });
  const group = useId();
  return (
    <fieldset className={styles.models}>
      <legend className="visually-hidden">
        <Trans>Model</Trans>
      </legend>
      <input
        className="field mono"
        type="search"
        aria-label={t`Search models, or enter the name of one`}
        placeholder={t`Search models, or enter the name of one`}
        spellCheck={false}
        autoComplete="off"
        value={search}
        onChange={(event) => setSearch(event.target.value)}
      />
      <Loaded query={models} label={t`the models`}>
        {({ items, total, problem }) => {
          const shown = sortSuggested(items, suggested).slice(0, MAX_SHOWN);
          const name = search.trim();
          const isOther = name !== "" && name === searched && !items.some((model) => model.name === name);
          return (
            <>
              {problem && (
                <p className="notice sun" role="status">
                  <b>
                    <Trans>The server did not list its models.</Trans>
                  </b>{" "}
                  <span dir="auto">{problem}</span> <Trans>You can enter the name of a model above.</Trans>
                </p>
              )}
              {shown.map((model) => (
                <ModelRow
                  key={model.name}
                  group={group}
                  name={model.name}
                  isChosen={model.name === chosen}
                  onChoose={onChoose}
                >
                  <ModelFacts model={model} isOwnServer={isOwnServer} />
                </ModelRow>
              ))}
              {isOther && (
                <ModelRow group={group} name={name} isChosen={name === chosen} onChoose={onChoose}>
                  <UnknownFacts />
                </ModelRow>
              )}
              {total > shown.length && (
                <p className="quiet">
                  <Trans>
                    {shown.length} of {total} models are shown. Search to see others.
                  </Trans>
                </p>
              )}
            </>
          );
        }}
      </Loaded>
    </fieldset>
  );
}

interface ModelRowProps {
  group: string;
  name: string;
  isChosen: boolean;
  onChoose(name: string): void;
  children: React.ReactNode;
}

function ModelRow({ group, name, isChosen, onChoose, children }: ModelRowProps) {
  return (
    <label className={styles.model}>
      <input type="radio" name={group} checked={isChosen} onChange={() => onChoose(name)} />
      <span className={styles.modelName}>
        <bdi>{name}</bdi>
        {children}
      </span>
    </label>
  );
}

/** Return the models with the suggested ones first, in their order. Pure. */
export function sortSuggested(models: readonly ProviderModel[], suggested: readonly string[]): ProviderModel[] {
  const first = suggested.flatMap((name) => models.filter((model) => model.name === name));
  return [...first, ...models.filter((model) => !suggested.includes(model.name))];
}
