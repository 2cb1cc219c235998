import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { enginesQuery } from "../api/installation";
import type { ProviderKind } from "../api/providers";
import { Field, Select } from "../ui/field";
import { Loaded } from "../ui/loaded";

interface EnvironmentModelsProps {
  kind: ProviderKind;
  chosen: string;
  onChoose(model: string): void;
}

/** The models of a provider whose key is in the environment of the installation. */
export function EnvironmentModels({ kind, chosen, onChoose }: EnvironmentModelsProps) {
  const engines = useQuery(enginesQuery);
  return (
    <Loaded query={engines} label={t`the models`}>
      {(loaded) => {
        const prefix = `${kind.name}/`;
        const listed = loaded.find(({ name }) => name === `litellm:${kind.name}`);
        const names = listed ? listed.models.map((model) => model.slice(prefix.length)) : [];
        const others = names.filter((name) => !kind.suggested_models.includes(name));
        return (
          <Field label={t`Model`}>
            {(control) => (
              <Select {...control} value={chosen} onChange={(event) => onChoose(event.target.value)}>
                <option value="">
                  <Trans>Choose a model</Trans>
                </option>
                {[...kind.suggested_models, ...others].map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        );
      }}
    </Loaded>
  );
}
