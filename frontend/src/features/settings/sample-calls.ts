/** Sample calls as text: one per line, the name of a tool and its arguments as JSON. */

import { t } from "@lingui/core/macro";

export interface SampleCall {
  tool: string;
  args: Record<string, unknown>;
}

// Not translated: a name that is an identifier.
export const EXAMPLE_NAME = "docs-only";

// Not translated: a tool policy in JSON.
export const EXAMPLE_POLICY = `{
  "rules": [
    {"tool": "search_library", "allow_other_args": true},
    {"tool": "web_search", "allow_other_args": true, "max_calls": 20, "reason": "The run searches for an answer."},
    {"tool": "fetch_page", "allow_other_args": true,
     "when": [{"arg": "url", "host": ["*.python.org"]}]},
    {"tool": "fetch_page", "effect": "ask", "allow_other_args": true, "when_tainted": true,
     "when": [{"arg": "url", "glob": "*[?]*"}], "reason": "A query can carry what was read."}
  ]
}
`;

// Not translated: calls of tools with arguments in JSON.
export const EXAMPLE_CALLS = `web_search {"query": "pool size"}
fetch_page {"url": "https://docs.python.org/3/search.html?q=pool"}
fetch_page {"url": "https://example.org/"}
`;

/** The most calls of one check. */
export const MAX_CALLS = 50;

/** Parse sample calls. `problem` names the first line that is wrong, and is empty if there is none. */
export function parseCalls(text: string): { calls: SampleCall[]; problem: string } {
  const lines = text.split("\n").map((line) => line.trim());
  const calls: SampleCall[] = [];
  for (const [index, line] of lines.entries()) {
    if (!line) continue;
    const call = parseCall(line);
    if (!call) {
      const number = index + 1;
      return { calls: [], problem: t`Line ${number}: write a call such as web_search {"query": "pool size"}.` };
    }
    calls.push(call);
  }
  if (calls.length > MAX_CALLS) return { calls: [], problem: t`There are more than ${MAX_CALLS} calls.` };
  return { calls, problem: "" };
}

/** Parse one line, or return `null` if it is not a call. Pure. */
function parseCall(line: string): SampleCall | null {
  const match = /^(\S+)\s*(\{.*\})?$/.exec(line);
  if (!match) return null;
  try {
    const args: unknown = JSON.parse(match[2] ?? "{}");
    return { tool: match[1] ?? "", args: args as Record<string, unknown> };
  } catch {
    // The caller reports the line.
    return null;
  }
}
