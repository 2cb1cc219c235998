/** Converts the fields of the fork dialog into a request. Pure. */

import { t } from "@lingui/core/macro";
import { parseEngineConfig } from "@/shared/api/installation";
import type { ForkRequest, Run } from "@/shared/api/runs";

/** Fields as typed. */
export interface ForkFields {
  message: string;
  turns: string;
  usd: string;
  minutes: string;
  /** Role whose engine is replaced. Empty means every role. */
  role: string;
  /** As in `litellm:openai/gpt-5-mini`. Empty means that the engines stay. */
  engine: string;
}

type Origin = Pick<Run, "budget" | "engines" | "graph">;

/** Return the fields with the values of the run. */
export function fieldsOfRun({ budget }: Origin, message: string): ForkFields {
  return {
    message,
    turns: String(budget.max_turns),
    usd: budget.max_cost_usd == null ? "" : String(budget.max_cost_usd),
    minutes: budget.max_seconds == null ? "" : String(Math.round((budget.max_seconds / 60) * 100) / 100),
    role: "",
    engine: "",
  };
}

const MAX_TURNS = 2048;

/** Return what must be changed before the fork can be created. `null` means that the fields are valid. */
export function validateFork(fields: ForkFields): string | null {
  const turns = Number(fields.turns);
  if (!Number.isInteger(turns) || turns < 1 || turns > MAX_TURNS)
    return t`Enter a whole number of turns from 1 to 2,048.`;
  if (!isLimit(fields.usd)) return t`Enter the maximum cost as a number of dollars, such as 2.50, or leave it empty.`;
  if (!isLimit(fields.minutes)) return t`Enter the maximum time as a number of minutes above zero, or leave it empty.`;
  return null;
}

function isLimit(text: string): boolean {
  return text.trim() === "" || Number(text) > 0;
}

function parseLimit(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

/** Build the request. A budget that was not changed is left out, so that the fork keeps that of the run. */
export function buildFork(origin: Origin, roles: readonly string[], at: number, fields: ForkFields): ForkRequest {
  const before = fieldsOfRun(origin, "");
  const isSame = (["turns", "usd", "minutes"] as const).every((name) => before[name] === fields[name]);
  const minutes = parseLimit(fields.minutes);
  const named = fields.role === "" ? [...new Set([...roles, ...Object.keys(origin.engines)])] : [fields.role];
  const engine = fields.engine.trim();
  return {
    at_seq: at,
    message: fields.message.trim(),
    engines: engine === "" ? {} : Object.fromEntries(named.map((role) => [role, parseEngineConfig(engine)])),
    ...(!isSame && {
      budget: {
        ...origin.budget,
        max_turns: Number(fields.turns),
        max_cost_usd: parseLimit(fields.usd),
        max_seconds: minutes === null ? null : minutes * 60,
      },
    }),
  };
}
