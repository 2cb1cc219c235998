/** Who saved a version of a report, in words. Pure. */

import { t } from "@lingui/core/macro";

/** Describe a person, as in "edited in the web UI". The server knows people by their session or their API key. */
export function describePerson(name: string): string {
  if (name === "web_ui") return t`in the web UI`;
  return name.startsWith("key:") ? t`with the API key ${name.slice("key:".length)}` : t`by ${name}`;
}
