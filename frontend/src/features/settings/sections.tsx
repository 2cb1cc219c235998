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
    name: "search",
    title: msg`Search engines`,
    description: msg`Which are used, keys, tests`,
    View: lazyView(msg`the search engines`, async () => (await import("./search-section")).SearchSection),
  },
  {
    name: "mcp",
    title: msg`MCP servers`,
    description: msg`Third-party tools, pins, changes`,
    View: lazyView(msg`the MCP servers`, async () => (await import("./mcp-section")).McpSection),
  },
  {
    name: "tool-policies",
    title: msg`Tool policies`,
    description: msg`Rules for tool calls, with a tester`,
    View: lazyView(msg`the tool policies`, async () => (await import("./policies-section")).PoliciesSection),
  },
  {
    name: "api-keys",
    title: msg`API keys`,
    description: msg`For programs that use the API`,
    View: lazyView(msg`the keys`, async () => (await import("./keys-section")).KeysSection),
  },
  {
    name: "share-links",
    title: msg`Share links`,
    description: msg`Who can read which report, until when`,
    View: lazyView(msg`the links`, async () => (await import("./shares-section")).SharesSection),
  },
  {
    name: "spending",
    title: msg`Spending`,
    description: msg`Daily limit, days, models`,
    View: lazyView(msg`the spending`, async () => (await import("./spending-section")).SpendingSection),
  },
  {
    name: "retention",
    title: msg`Stored data`,
    description: msg`What is kept, for how long, sizes`,
    View: lazyView(msg`what is stored`, async () => (await import("./retention-section")).RetentionSection),
  },
  {
    name: "health",
    title: msg`Health`,
    description: msg`Servers, workers, queue, disk`,
    View: lazyView(msg`the state of the installation`, async () => (await import("./health-section")).HealthSection),
  },
  {
    name: "appearance",
    title: msg`Appearance`,
    description: msg`Theme, density, language`,
    View: lazyView(msg`the appearance`, async () => (await import("./appearance-section")).AppearanceSection),
  },
  {
    name: "notifications",
    title: msg`Notifications`,
    description: msg`This browser, webhooks`,
    View: lazyView(msg`the notifications`, async () => (await import("./notifications-section")).NotificationsSection),
  },
];
