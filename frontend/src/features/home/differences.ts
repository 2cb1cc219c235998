/** What of the settings differs from the defaults. Pure. */

import { t } from "@lingui/core/macro";
import { collectionLabel } from "@/shared/api/library";
import { joinList } from "@/shared/format/lists";
import { DEFAULT_SETTINGS, listRoleEngines, type Settings, splitDomains } from "./settings";

/** List what differs from the defaults, in a few words each, without the number of turns. */
export function listDifferences(settings: Settings): string[] {
  const of = <K extends keyof Settings>(name: K) => settings[name] !== DEFAULT_SETTINGS[name];
  const roles = listRoleEngines(settings).length;
  return [
    of("graph") && settings.graph,
    of("preset") && t`preset ${settings.preset}`,
    of("engine") && settings.engine.trim(),
    roles > 0 && t`models of roles`,
    settings.collections.length > 0 && joinList(settings.collections.map(collectionLabel)),
    of("web") && (settings.onlyDomains.trim() ? t`web: ${splitDomains(settings.onlyDomains).join(", ")}` : t`web`),
    settings.web && of("excludedDomains") && t`not ${splitDomains(settings.excludedDomains).join(", ")}`,
    of("offline") && t`offline`,
    of("code") && t`code`,
    of("toolPolicy") && t`tool policy ${settings.toolPolicy}`,
    settings.mcp.length > 0 && joinList([...settings.mcp]),
    of("usd") && t`at most $${settings.usd.trim()}`,
    of("minutes") && t`at most ${settings.minutes.trim()} min`,
    of("tokens") && t`at most ${settings.tokens.trim()} tokens`,
    settings.length === "brief" && t`brief report`,
    settings.length === "standard" && t`report of standard length`,
    settings.length === "long" && t`long report`,
    of("language") && t`in ${settings.language.trim()}`,
    settings.template.trim() !== "" && t`own outline`,
    of("clarify") && t`asks first`,
    of("reviewPlan") && t`shows its plan`,
  ].filter((one) => one !== false);
}
