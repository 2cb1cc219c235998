import type { Preset } from "@/shared/api/providers";
import type { Run } from "@/shared/api/runs";

/** Return the name of the preset whose models the roles of a run have, or `undefined`. Pure. */
export function findPresetName({ engines }: Pick<Run, "engines">, presets: readonly Preset[]): string | undefined {
  const configs = Object.entries(engines).filter(([, config]) => config.model);
  if (configs.length === 0) return undefined;
  return presets.find((preset) =>
    configs.every(([role, config]) => {
      const chosen = preset.engines[role] ?? preset.engines.all;
      return chosen?.engine === config.engine && chosen?.model === config.model;
    }),
  )?.name;
}
