/** What this installation offers and what the tenant has set. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Graph = Schemas["GraphOut"];
export type Engine = Schemas["EngineOut"];
export type EngineChoice = Schemas["EngineChoice"];
export type Tenant = Schemas["TenantOut"];
export type TenantChange = Partial<Schemas["TenantIn"]>;

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

/** `engine`, `engine:model` or `engine+form:model`, each with `;library=NAME` after it for a prompt library. Pure. */
export function engineChoice(written: string): EngineChoice {
  const [text = "", library = ""] = written.trim().split(";library=");
  const cut = text.indexOf(":");
  const [named, model] = cut < 0 ? [text, ""] : [text.slice(0, cut), text.slice(cut + 1)];
  const [engine = "", form = ""] = named.split("+");
  return { engine, model, form, library, max_tokens: 2048, timeout_seconds: 120, api_base: "", options: {} };
}

/** What is left out stays as it is. */
export function changeTenant(body: TenantChange) {
  return unwrap(api.PATCH("/api/v1/tenant", { body: body as Schemas["TenantIn"] }));
}
