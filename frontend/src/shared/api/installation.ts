/** Graphs, engines and MCP servers of this installation, and the settings of the tenant. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Graph = Schemas["GraphOut"];
export type Engine = Schemas["EngineOut"];
export type EngineConfig = Schemas["EngineConfig"];
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

/**
 * Parse `engine`, `engine:model` or `engine+format:model`, each optionally followed by `;library=NAME` for a prompt
 * library. Pure.
 */
export function parseEngineConfig(written: string): EngineConfig {
  const [text = "", promptLibrary = ""] = written.trim().split(";library=");
  const colon = text.indexOf(":");
  const [named, model] = colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
  const [engine = "", promptFormat = ""] = named.split("+");
  return {
    engine,
    model,
    prompt_format: promptFormat,
    prompt_library: promptLibrary,
    max_tokens: 2048,
    timeout_seconds: 120,
    api_base: "",
    options: {},
  };
}

/** Update the tenant. Omitted fields are unchanged. */
export function updateTenant(body: TenantUpdate) {
  return unwrap(api.PATCH("/api/v1/tenant", { body: body as Schemas["TenantIn"] }));
}
