/** Stop reasons in two or three words. */

import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { StopReason } from "@/shared/api/runs";

export const STOP_NAMES: Record<StopReason, MessageDescriptor> = {
  answered: msg`answered`,
  nothing_found: msg`nothing found`,
  saturated: msg`saturated`,
  turn_limit: msg`turn limit`,
  token_limit: msg`token limit`,
  spend_limit: msg`spend limit`,
  tenant_spend_limit: msg`tenant spend limit`,
  time_limit: msg`time limit`,
  context_limit: msg`context limit`,
  provider_down: msg`provider down`,
  invalid_output: msg`invalid output`,
  finish_requested: msg`finish requested`,
  cancelled: msg`cancelled`,
  graph_error: msg`graph error`,
  no_progress: msg`no progress`,
};
