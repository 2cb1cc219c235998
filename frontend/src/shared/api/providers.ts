/** Providers of the tenant, their models, and presets. A key is sent and never read. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Provider = Schemas["ProviderOut"];
export type ProviderRequest = Schemas["ProviderIn"];
export type ProviderKind = Schemas["ProviderKindOut"];
export type ProviderModel = Schemas["ProviderModelOut"];
export type ProviderTest = Schemas["ProviderTestOut"];
export type Preset = Schemas["PresetOut"];
export type PresetRequest = Schemas["PresetIn"];

export const providersQuery = queryOptions({
  queryKey: ["providers"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/providers", { signal })),
});

export const providerKindsQuery = queryOptions({
  queryKey: ["provider-kinds"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/provider-kinds", { signal })),
  staleTime: 300_000,
});

/** The models of a stored provider whose names contain the words of `search`. */
export function providerModelsQuery(name: string, search = "") {
  return queryOptions({
    queryKey: ["provider-models", name, search],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/providers/{name}/models", {
          params: { path: { name }, query: { q: search || undefined } },
          signal,
        }),
      ),
    staleTime: 60_000,
  });
}

export const presetsQuery = queryOptions({
  queryKey: ["presets"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/presets", { signal })),
});

export function storeProvider(name: string, body: ProviderRequest) {
  return unwrap(api.PUT("/api/v1/providers/{name}", { params: { path: { name } }, body }));
}

export function deleteProvider(name: string) {
  return unwrap(api.DELETE("/api/v1/providers/{name}", { params: { path: { name } } }));
}

/** Try what a model can do. Takes up to about 100 seconds. */
export function testProvider(name: string, model: string) {
  return unwrap(
    api.POST("/api/v1/providers/{name}/test", { params: { path: { name } }, body: { model, max_cost_usd: 0.05 } }),
  );
}

export function storePreset(name: string, body: PresetRequest) {
  return unwrap(api.PUT("/api/v1/presets/{name}", { params: { path: { name } }, body }));
}

export function deletePreset(name: string) {
  return unwrap(api.DELETE("/api/v1/presets/{name}", { params: { path: { name } } }));
}
