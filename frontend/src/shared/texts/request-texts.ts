/** What the platform asks a person for a run. What a graph or a model asks is shown unchanged. */

import { plural, t } from "@lingui/core/macro";
import type { Schemas } from "../api/client";
import type { InputRequest } from "../api/input-requests";
import { sayText, type TextsByCode } from "./coded-text";

type RequestTextCode = Extract<Schemas["RunTextCode"], `${"ask" | "asked"}_${string}`>;

export const REQUEST_TEXTS: TextsByCode<RequestTextCode> = {
  ask_tool: ({ tool }) => t`May the run use ${tool}?`,
  ask_tools: ({ count }) =>
    plural(Number(count), { one: "May the run make this tool call?", other: "May the run make these # tool calls?" }),
  ask_to_continue: () => t`The run asks whether to continue.`,
  ask_for_plan: () => t`Is this the plan to follow?`,
  asked_because: ({ call, reason }) => `${call}\n\n${t`Asked because of ${reason}`}`,
};

/** Return what an input request asks, with its details. */
export function requestTexts({ prompt, detail, texts }: InputRequest): { prompt: string; detail: string } {
  return {
    prompt: sayText(REQUEST_TEXTS, prompt, texts.prompt),
    detail: sayText(REQUEST_TEXTS, detail, texts.detail),
  };
}
