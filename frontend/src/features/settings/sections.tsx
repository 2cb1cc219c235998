/** The sections of the settings, in the order of their list. Each section is one module, which is loaded when it is opened. */

import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { ComponentType } from "react";
import { lazyView } from "@/shared/ui/lazy-view";

export interface Section {
  /** The part of the address after `/settings/`. */
  name: string;
  title: MessageDescriptor;
  /** What it contains, shown in the list. */
  description: MessageDescriptor;
  View: ComponentType;
}

export const SECTIONS: readonly Section[] = [
  {
    name: "models",
    title: msg`Models`,
    description: msg`Providers, servers on this machine, presets`,
    View: lazyView(msg`the models`, async () => (await import("./models-section")).ModelsSection),
  },
  {
    name: "appearance",
    title: msg`Appearance`,
    description: msg`Theme, language`,
    View: lazyView(msg`the appearance`, async () => (await import("./appearance-section")).AppearanceSection),
  },
  {
    name: "notifications",
    title: msg`Notifications`,
    description: msg`This browser, webhooks`,
    View: lazyView(msg`the notifications`, async () => (await import("./notifications-section")).NotificationsSection),
  },
];
