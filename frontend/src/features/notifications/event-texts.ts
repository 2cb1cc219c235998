/** What each kind of notification is called, and the tone of its mark. */

import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { EventKind } from "@/shared/api/notifications";

export const EVENT_TEXTS: Record<EventKind, { text: MessageDescriptor; tone: "sun" | "moss" | "coral" | "neutral" }> = {
  "run.waiting": { text: msg`Waits for you`, tone: "sun" },
  "run.done": { text: msg`Run ended`, tone: "moss" },
  "run.failed": { text: msg`Run failed`, tone: "coral" },
  "run.cancelled": { text: msg`Run cancelled`, tone: "neutral" },
};
