import { useMutation, useQueryClient } from "@tanstack/react-query";
import { tenantQuery, updateTenant } from "../api/installation";
import { presetsQuery, storePreset } from "../api/providers";
import { answersAll, presetNameOf } from "./setup-text";

interface ChosenModel {
  provider: string;
  /** Name of the model at the provider. */
  model: string;
}

/** Let a model answer new questions: store a preset for it unless there is one, and make it the default. */
export function useDefaultModel(onChosen: (preset: string) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ provider, model }: ChosenModel) => {
      const presets = await client.fetchQuery({ ...presetsQuery, staleTime: 0 });
      const named = `${provider}/${model}`;
      const name = presetNameOf(provider, model, presets);
      if (!presets.some((preset) => preset.name === name && answersAll(preset, named))) {
        await storePreset(name, { engines: { all: createEngine(named) }, budget: {} });
      }
      const tenant = await updateTenant({ default_preset: name });
      client.setQueryData(tenantQuery.queryKey, tenant);
      await client.invalidateQueries({ queryKey: ["presets"] });
      return name;
    },
    onSuccess: onChosen,
  });
}

/** Return the engine config of a provider's model, as `provider/model`. */
export function createEngine(model: string) {
  return { engine: "litellm", model, prompt_format: "", prompt_library: "", api_base: "", options: {} };
}
