/** The screens of the web UI, in the order of the navigation. The navigation, the keyboard and the palette use this list. */

import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { AskIcon, LibraryIcon, RunsIcon, SettingsIcon, TrainingIcon } from "./icons";

export interface Screen {
  name: MessageDescriptor;
  to: "/" | "/runs" | "/library" | "/training" | "/settings";
  /** Keys that open it. On a run, `g` with another letter opens a tab of the run. */
  keys: string;
  icon: ReactNode;
}

export const SCREENS: readonly Screen[] = [
  { name: msg`Ask`, to: "/", keys: "g h", icon: <AskIcon /> },
  { name: msg`Runs`, to: "/runs", keys: "g u", icon: <RunsIcon /> },
  { name: msg`Library`, to: "/library", keys: "g l", icon: <LibraryIcon /> },
  { name: msg`Training`, to: "/training", keys: "g j", icon: <TrainingIcon /> },
  { name: msg`Settings`, to: "/settings", keys: "g ,", icon: <SettingsIcon /> },
];

/** Return whether a screen contains the address. */
export function isOnScreen(screen: Screen, path: string): boolean {
  return screen.to === "/" ? path === "/" : path === screen.to || path.startsWith(`${screen.to}/`);
}
