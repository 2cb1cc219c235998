/** Loads what a request needs beyond the form. */

import { t } from "@lingui/core/macro";
import type { QueryClient } from "@tanstack/react-query";
import { ProblemError } from "@/shared/api/client";
import { graphsQuery } from "@/shared/api/installation";
import type { RequestParts } from "./request";
import type { Settings } from "./settings";
import { needsGraphs, validateEngine } from "./validation";

/** Load what the settings name. Raises ProblemError if a request cannot be built from it; then nothing may be sent. */
export async function loadRequestParts(client: QueryClient, settings: Settings): Promise<RequestParts> {
  const graphs = needsGraphs(settings) ? await client.ensureQueryData(graphsQuery) : [];
  const problem = validateEngine(settings, graphs);
  if (problem) throw new ProblemError(422, t`The run was not created`, problem, t`Model`);
  if (!settings.toolPolicy) return { graphs, toolPolicy: null };
  const { loadToolPolicy } = await import("./tool-policy");
  return { graphs, toolPolicy: await loadToolPolicy(client, settings.toolPolicy) };
}
