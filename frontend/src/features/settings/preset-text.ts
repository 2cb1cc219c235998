/** Texts and values of presets. */

import type { MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { EngineConfig } from "@/shared/api/installation";
import type { Preset, PresetRequest } from "@/shared/api/providers";
import { engineText, toEngineConfig } from "@/shared/model-setup/engine-text";

export type Depth = "quick" | "standard" | "deep";

export const DEPTH_LABELS: Record<Depth, MessageDescriptor> = {
  quick: msg`Quick`,
  standard: msg`Standard`,
  deep: msg`Deep`,
};

/** Stands for every role that a preset does not name. */
export const ALL_ROLES = "all";

/** Return the label of a role. Names of roles are those of the graph. `isOnly` means that the preset names no other. */
export function roleLabel(role: string, isOnly = false): string {
  if (role !== ALL_ROLES) return role;
  return isOnly ? t`all roles` : t`all other roles`;
}

/** A preset as it is typed. */
export interface PresetDraft {
  name: string;
  /** Text of the engine by role. Empty means that the role is not named. */
  engines: Readonly<Record<string, string>>;
  turns: string;
  usd: string;
  minutes: string;
  /** Empty means that the preset does not set it. */
  depth: Depth | "";
}

/** Return the draft of a stored preset. `null` means a new one. Pure. */
export function toPresetDraft(preset: Preset | null): PresetDraft {
  const budget: Preset["budget"] = preset ? preset.budget : {};
  const engines = preset ? preset.engines : {};
  return {
    name: preset ? preset.name : "",
    engines: Object.fromEntries(Object.entries(engines).map(([role, config]) => [role, engineText(config)])),
    turns: toText(budget.max_turns),
    usd: toText(budget.max_cost_usd),
    minutes: budget.max_seconds == null ? "" : String(budget.max_seconds / 60),
    depth: budget.depth ?? "",
  };
}

function toText(value: number | null | undefined): string {
  return value == null ? "" : String(value);
}

/** Return what must be changed before the preset can be stored. `null` means that it is valid. */
export function validatePreset(draft: PresetDraft, isTaken: boolean): string | null {
  if (!/^[a-z0-9][a-z0-9_.-]{0,63}$/.test(draft.name.trim()))
    return t`Enter a name of lower-case letters, digits, periods, hyphens and underscores.`;
  if (isTaken) return t`There is a preset of this name. Edit that one, or enter another name.`;
  if (Object.values(draft.engines).every((engine) => !engine.trim()))
    return t`Choose a model for at least one role, or for all other roles.`;
  if (![draft.turns, draft.usd, draft.minutes].every(isLimit))
    return t`Enter limits as numbers above zero, or leave them empty.`;
  return null;
}

function isLimit(text: string): boolean {
  return text.trim() === "" || Number(text) > 0;
}

/** Return the request that stores a draft. What the form does not show is kept from the stored preset. Pure. */
export function toPresetRequest(draft: PresetDraft, preset: Preset | null): PresetRequest {
  const stored: Record<string, EngineConfig> = preset ? preset.engines : {};
  const named = Object.entries(draft.engines).filter(([, engine]) => engine.trim() !== "");
  const minutes = toNumber(draft.minutes);
  return {
    engines: Object.fromEntries(named.map(([role, engine]) => [role, toEngineConfig(engine, stored[role])])),
    budget: {
      max_tokens: preset ? (preset.budget.max_tokens ?? null) : null,
      max_turns: toNumber(draft.turns),
      max_cost_usd: toNumber(draft.usd),
      max_seconds: minutes === null ? null : minutes * 60,
      depth: draft.depth || null,
    },
  };
}

function toNumber(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}
