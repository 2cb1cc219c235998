/** What this installation offers and what the tenant has set. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Graph = Schemas["GraphOut"];
export type Engine = Schemas["EngineOut"];
export type EngineChoice = Schemas["EngineChoice"];
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

export const tenantQuery = queryOptions({
  queryKey: ["tenant"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/tenant", { signal })),
});

/** What is left out stays as it is. */
export function changeTenant(body: TenantChange) {
  return unwrap(api.PATCH("/api/v1/tenant", { body: body as Schemas["TenantIn"] }));
}
