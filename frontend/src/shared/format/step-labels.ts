/** The words before the steps of a timeline. Labels of other authors' graphs are shown unchanged. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { Step } from "@/shared/api/runs";

const LABELS: Record<string, MessageDescriptor> = {
  analysis: msg`analysis`,
  analyze: msg`analyze`,
  calculate: msg`calculate`,
  call: msg`call`,
  check: msg`check`,
  child: msg`child run`,
  clarification: msg`clarification`,
  clarify: msg`clarify`,
  continue: msg`continue`,
  correct: msg`correct`,
  ended: msg`ended`,
  failed: msg`failed`,
  failure: msg`failed`,
  follow_up: msg`follow-up`,
  forked: msg`forked`,
  input_request: msg`question`,
  input_response: msg`answer`,
  memory: msg`memory`,
  lead: msg`lead`,
  "message read": msg`message read`,
  "not asked": msg`not asked`,
  note: msg`note`,
  paused: msg`paused`,
  plan: msg`plan`,
  "plan change": msg`plan change`,
  "plan read": msg`plan read`,
  queued: msg`queued`,
  read: msg`read`,
  recall: msg`recall`,
  remember: msg`remember`,
  report: msg`report`,
  resumed: msg`resumed`,
  "reviewed plan": msg`reviewed plan`,
  route: msg`route`,
  search: msg`search`,
  started: msg`started`,
  unusable: msg`unusable`,
  user_message: msg`message`,
  verification: msg`verify`,
  verify: msg`verify`,
  waiting: msg`waiting`,
  window: msg`window`,
  write: msg`write`,
};

/** Return the word before a step: whether it failed, else its label, else its kind. */
export function stepLabel({ ok, label, kind }: Pick<Step, "ok" | "label" | "kind">): string {
  const text = ok ? label || kind : "failed";
  const known = Object.hasOwn(LABELS, text) ? LABELS[text] : undefined;
  return known ? i18n._(known) : text;
}
