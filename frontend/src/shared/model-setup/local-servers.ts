/** Model servers that were found on the server's machine. Pure. */

import type { Engine } from "../api/installation";

export interface LocalServer {
  /** litellm's name of the provider. */
  provider: string;
  /** Models by their names at the server. Empty if the operator has not accepted the server. */
  models: readonly string[];
  /** The address that the operator must accept first. Empty means that runs may use the server. */
  offeredAt: string;
}

const SERVERS = new Set(["ollama_chat", "hosted_vllm", "llamafile", "lm_studio"]);

/** Return the servers among the engines. A server that does not answer is not listed. */
export function listLocalServers(engines: readonly Engine[]): LocalServer[] {
  return engines.flatMap(({ name, models, offered_at: offeredAt }) => {
    const provider = name.replace(/^litellm:/, "");
    if (!SERVERS.has(provider)) return [];
    return [{ provider, models: models.map((model) => model.slice(provider.length + 1)), offeredAt }];
  });
}
