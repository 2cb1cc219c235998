/** Why a run failed, where the platform says it. Errors of graphs and providers are shown unchanged. */

import { t } from "@lingui/core/macro";
import type { Schemas } from "../api/client";
import type { Run } from "../api/runs";
import { sayText, type TextsByCode } from "./coded-text";

type FailureTextCode = Extract<Schemas["RunTextCode"], "workers_stopped" | "no_person_to_ask">;

export const FAILURE_TEXTS: TextsByCode<FailureTextCode> = {
  workers_stopped: ({ count }) => t`${count} workers in a row stopped responding during this run.`,
  no_person_to_ask: () => t`The graph made an input request, but a rollout has no person to ask.`,
};

/** Return why a run failed. Empty means that it did not. */
export function runError({ error, texts }: Pick<Run, "error" | "texts">): string {
  return sayText(FAILURE_TEXTS, error ?? "", texts.error);
}
