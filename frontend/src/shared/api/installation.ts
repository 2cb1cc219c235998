/** Graphs, engines and MCP servers of this installation, and the settings of the tenant. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Graph = Schemas["GraphOut"];
export type Engine = Schemas["EngineOut"];
export type EngineConfig = Schemas["EngineConfig-Input"];
export type Tenant = Schemas["TenantOut"];
export type TenantUpdate = Partial<Schemas["TenantIn"]>;

export const graphsQuery = queryOptions({
  queryKey: ["graphs"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/graphs", { signal })),
  staleTime: 300_000,
});

export const enginesQuery = queryOptions({
  queryKey: ["engines"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/engines", { signal })),
  staleTime: 60_000,
});

export const mcpServersQuery = queryOptions({
  queryKey: ["mcp-servers"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/mcp-servers", { signal })),
  staleTime: 60_000,
});

export const tenantQuery = queryOptions({
  queryKey: ["tenant"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/tenant", { signal })),
});

const TOKEN_SETTINGS = ["max_tokens", "context_tokens", "output_tokens"];
const SETTINGS = ["library", "reasoning_effort", ...TOKEN_SETTINGS];

const FALLBACK = /;\s*fallback\s*=\s*/;

/**
 * Parse `engine`, `engine:model` or `engine+format:model`, each optionally followed by settings, such as
 * `;library=NAME;max_tokens=8000;reasoning_effort=low`. `;fallback=provider/model` adds a fallback, whose own settings
 * follow it. The server checks the values. An unknown setting stays part of the model, so that it is not dropped. Pure.
 */
export function parseEngineConfig(written: string): EngineConfig {
  const [own = "", ...named] = written.trim().split(FALLBACK);
  const fallbacks = named.map((one) => parseOneEngine(`litellm:${one.trim().replace(/^litellm:/, "")}`));
  return { ...parseOneEngine(own), ...(fallbacks.length > 0 ? { fallbacks } : {}) };
}

/** Parse an engine without fallbacks. Pure. */
function parseOneEngine(written: string): EngineConfig {
  const [text = "", ...rest] = written.trim().split(";");
  const named = rest.map((setting) => splitOnce(setting, "="));
  const settings = new Map(named.filter(([name]) => SETTINGS.includes(name)));
  const unknown = rest.filter((setting) => !SETTINGS.includes(splitOnce(setting, "=")[0]));
  const [answeredBy, model] = splitOnce(text, ":");
  const [engine, promptFormat] = splitOnce(answeredBy, "+");
  const effort = settings.get("reasoning_effort") as EngineConfig["reasoning_effort"];
  const limits = TOKEN_SETTINGS.filter((name) => settings.has(name));
  return {
    engine,
    model: [model, ...unknown].join(";"),
    prompt_format: promptFormat,
    prompt_library: settings.get("library") ?? "",
    api_base: "",
    options: {},
    ...(effort ? { reasoning_effort: effort } : {}),
    ...Object.fromEntries(limits.map((name) => [name, toNumber(settings.get(name) ?? "")])),
  };
}

/** Write an engine in the notation that `parseEngineConfig` reads. Other fields, such as options, are left out. Pure. */
export function formatEngineConfig(config: Partial<Schemas["EngineConfig-Output"]>): string {
  const { engine = "extractive", model, prompt_format: format, prompt_library: library, fallbacks } = config;
  const settings = {
    library,
    reasoning_effort: config.reasoning_effort,
    max_tokens: config.max_tokens,
    context_tokens: config.context_tokens,
    output_tokens: config.output_tokens,
  };
  const written = Object.entries(settings).filter(([, value]) => value != null && value !== "");
  return [
    `${engine}${format ? `+${format}` : ""}${model ? `:${model}` : ""}`,
    ...written.map(([name, value]) => `${name}=${value}`),
    ...(fallbacks ?? []).map((one) => `fallback=${formatEngineConfig(one).replace(/^litellm:/, "")}`),
  ].join(";");
}

/** Return the number in a text, or the text itself, which the server rejects. Pure. */
function toNumber(text: string): number | string {
  return text.trim() && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Split a text at the first separator. Without one, the second part is empty. Pure. */
function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** Update the tenant. Omitted fields are unchanged. */
export function updateTenant(body: TenantUpdate) {
  return unwrap(api.PATCH("/api/v1/tenant", { body: body as Schemas["TenantIn"] }));
}
