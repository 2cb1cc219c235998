/** The stored tool policy that a question uses. Loaded only by questions that have one, and by the options. */

import { t } from "@lingui/core/macro";
import type { QueryClient } from "@tanstack/react-query";
import { ProblemError } from "@/shared/api/client";
import type { RunRequest } from "@/shared/api/runs";
import { type NamedToolPolicy, toolPoliciesQuery } from "@/shared/api/settings";
import type { Settings } from "./settings";

export type ToolPolicy = NonNullable<RunRequest["tool_policy"]>;

/** Return why the selected tool policy cannot be used. `null` means that it can, or that none is selected. */
export function validateToolPolicy(
  { toolPolicy }: Pick<Settings, "toolPolicy">,
  stored: readonly Pick<NamedToolPolicy, "name" | "policy">[],
): string | null {
  if (!toolPolicy) return null;
  const selected = stored.find(({ name }) => name === toolPolicy);
  if (!selected) return t`The tool policy ${toolPolicy} is no longer stored. Select another one, or the default.`;
  if (selected.policy !== null) return null;
  return t`This version of Offing cannot read the tool policy ${toolPolicy}. Select another one, or the default.`;
}

/**
 * Return the tool policy of this name as it is stored now. It is always read from the server: a list that was loaded
 * earlier could allow what was forbidden since. Raises ProblemError for its field if it cannot be used, so that a
 * question never falls back to the default.
 */
export async function loadToolPolicy(client: QueryClient, name: string): Promise<ToolPolicy> {
  const stored = await client.fetchQuery({ ...toolPoliciesQuery, staleTime: 0 });
  const problem = validateToolPolicy({ toolPolicy: name }, stored);
  if (problem) throw new ProblemError(422, t`The run was not created`, problem, "tool_policy");
  return stored.find((one) => one.name === name)?.policy as unknown as ToolPolicy;
}
