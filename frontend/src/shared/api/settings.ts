/** Search engines, MCP servers, tool policies, API keys, spending, stored data and health of the installation. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type SearchSetup = Schemas["SearchSetupOut"];
export type SearchEngine = Schemas["SearchEngineOut"];
export type McpSetup = Schemas["McpSetupOut"];
export type McpServerState = Schemas["McpServerStateOut"];
export type McpListing = Schemas["McpListingOut"];
export type McpTool = Schemas["McpToolOut"];
export type McpToolChange = Schemas["McpToolChangeOut"];
export type McpServerRequest = Schemas["McpServerIn"];
export type ApiKey = Schemas["ApiKeyOut"];
export type Spending = Schemas["SpendingOut"];
export type StoredData = Schemas["StoredDataOut"];
export type InstallationHealth = Schemas["InstallationHealthOut"];
export type NamedToolPolicy = Schemas["NamedToolPolicyOut"];
export type ToolPolicyCheck = Schemas["ToolPolicyCheckOut"];
export type ToolPolicyCheckRequest = Schemas["ToolPolicyCheckIn"];
export type SampleDecision = Schemas["SampleDecisionOut"];

export const searchSetupQuery = queryOptions({
  queryKey: ["installation", "search-engines"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/installation/search-engines", { signal })),
});

/** Search with one engine. The query is sent to it. */
export function runTestSearch(name: string, query: string) {
  const params = { path: { name } };
  return unwrap(api.POST("/api/v1/installation/search-engines/{name}/test", { params, body: { query } }));
}

export const mcpSetupQuery = queryOptions({
  queryKey: ["installation", "mcp-servers"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/installation/mcp-servers", { signal })),
});

/** List the present tools of a server, and what has changed since they were pinned. */
export function checkMcpServer(name: string) {
  return unwrap(api.POST("/api/v1/installation/mcp-servers/{name}/check", { params: { path: { name } } }));
}

/** List the tools of a server before it is added. */
export function previewMcpServer(name: string, body: McpServerRequest) {
  return unwrap(api.POST("/api/v1/installation/mcp-servers/{name}/preview", { params: { path: { name } }, body }));
}

/** Add a server and pin its tools, if they are those with this hash. */
export function addMcpServer(name: string, request: McpServerRequest, sha256: string) {
  const body = { ...request, sha256 };
  return unwrap(api.PUT("/api/v1/installation/mcp-servers/{name}", { params: { path: { name } }, body }));
}

/** Pin the tools of a server, if they are those with this hash. */
export function pinMcpServer(name: string, sha256: string) {
  const params = { path: { name } };
  return unwrap(api.PUT("/api/v1/installation/mcp-servers/{name}/pin", { params, body: { sha256 } }));
}

/** Remove the pin of a server, so that runs cannot use it. */
export function unpinMcpServer(name: string) {
  return unwrap(api.DELETE("/api/v1/installation/mcp-servers/{name}/pin", { params: { path: { name } } }));
}

export const apiKeysQuery = queryOptions({
  queryKey: ["api-keys"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/api-keys", { signal })),
});

/** Create an API key. Only this response contains its secret. */
export function createApiKey(name: string, expiresInDays: number | null) {
  return unwrap(api.POST("/api/v1/api-keys", { body: { name, expires_in_days: expiresInDays } }));
}

export function revokeApiKey(id: string) {
  return unwrap(api.DELETE("/api/v1/api-keys/{key_id}", { params: { path: { key_id: id } } }));
}

/** Days that the spending lists. */
export const SPENDING_DAYS = 30;

export const spendingQuery = queryOptions({
  queryKey: ["spending"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/spending", { params: { query: { days: SPENDING_DAYS } }, signal })),
});

export const storedDataQuery = queryOptions({
  queryKey: ["installation", "stored-data"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/installation/stored-data", { signal })),
});

export const healthQuery = queryOptions({
  queryKey: ["installation", "health"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/installation/health", { signal })),
  refetchInterval: 10_000,
});

export const toolPoliciesQuery = queryOptions({
  queryKey: ["tool-policies"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/tool-policies", { signal })),
});

/** Check a tool policy and decide sample calls. Nothing is stored. */
export function checkToolPolicy(body: ToolPolicyCheckRequest) {
  return unwrap(api.POST("/api/v1/tool-policies/check", { body }));
}

/** Keep a tool policy under a name. The server rejects a policy that is not valid. */
export function putToolPolicy(name: string, policy: unknown) {
  const body = { policy: policy as Schemas["NamedToolPolicyIn"]["policy"] };
  return unwrap(api.PUT("/api/v1/tool-policies/{name}", { params: { path: { name } }, body }));
}

export function deleteToolPolicy(name: string) {
  return unwrap(api.DELETE("/api/v1/tool-policies/{name}", { params: { path: { name } } }));
}
