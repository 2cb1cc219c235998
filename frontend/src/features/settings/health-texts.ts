/** The results of health checks in the person's language. A code that this page does not know has the server's texts. */

import { t } from "@lingui/core/macro";
import type { InstallationHealth } from "@/shared/api/settings";

export type Check = InstallationHealth["checks"][number];
export type CheckCode = NonNullable<Check["code"]>;

export interface CheckText {
  name: string;
  detail: string;
  /** Empty means that there is nothing to do. */
  remedy: string;
}

const PARAMETERS = {
  count: "…",
  engines: "…",
  error: "…",
  first: "…",
  folder: "…",
  gb: "…",
  latest: "…",
  min_gb: "…",
  origin: "…",
  runs: "…",
  seconds: "…",
  servers: "…",
  slots: "…",
  version: "…",
  versions: "…",
};
/** What texts name. A parameter that a server leaves out is shown as an ellipsis. */
type Parameters = Readonly<typeof PARAMETERS>;

/** Parts of a text that differ from the server's. Others are the server's, which name what only it knows. */
type Texts = Record<CheckCode, (p: Parameters) => Partial<CheckText>>;

const api = () => t`API`;
const postgres = () => t`Postgres`;
const redis = () => t`Redis`;
const schema = () => t`Database schema`;
const workers = () => t`Workers`;
const queue = () => t`Queue`;
const disk = () => t`Disk`;
const search = () => t`Web search`;
const mcp = () => t`MCP servers`;
const sandbox = () => t`Sandbox`;

const origin = ({ origin }: Parameters) => (origin === "embedded" ? t`started by Offing` : t`external`);
const unreadable = () => t`cannot be read, because Postgres does not answer`;
const startServer = (variable: string) =>
  t`Start that server, or correct ${variable}. For an installation of \`offing up\`, run it again.`;
const waiting = ({ count, seconds }: Parameters) =>
  t`Runs that wait for a worker: ${count}, the oldest for ${seconds} s`;

const TEXTS: Texts = {
  api_version: ({ version }) => ({ name: api(), detail: `Offing ${version}` }),
  postgres_works: (p) => ({ name: postgres(), detail: t`${p.version}, ${origin(p)}` }),
  postgres_down: () => ({ name: postgres(), detail: t`does not answer`, remedy: startServer("DATABASE_URL") }),
  redis_works: (p) => ({ name: redis(), detail: t`answers, ${origin(p)}` }),
  redis_down: () => ({
    name: redis(),
    detail: t`does not answer. Runs continue, but the web UI is updated a few seconds later`,
    remedy: startServer("REDIS_URL"),
  }),
  schema_works: ({ count, latest }) => ({ name: schema(), detail: t`${count} migrations, the last is ${latest}` }),
  schema_empty: () => ({ name: schema(), detail: t`empty` }),
  schema_unreadable: () => ({ name: schema(), detail: unreadable(), remedy: startServer("DATABASE_URL") }),
  schema_outdated: ({ count, first }) => ({
    name: schema(),
    detail: t`${count} migrations are missing, first ${first}`,
    remedy: t`Run \`offing migrate\`, and restart the workers.`,
  }),
  schema_newer: ({ latest }) => ({
    name: schema(),
    detail: t`is newer than this process: it has ${latest}`,
    remedy: t`Update this process to the version of Offing that migrated the database, and restart it.`,
  }),
  workers_unreadable: () => ({ name: workers(), detail: unreadable(), remedy: startServer("DATABASE_URL") }),
  workers_none: () => ({
    name: workers(),
    detail: t`none is alive, so no run advances`,
    remedy: t`Run \`offing up\`, or start a worker. Its log says why one has ended.`,
  }),
  workers_mixed: ({ versions, version }) => ({
    name: workers(),
    detail: t`some have version ${versions}, and the API has ${version}`,
    remedy: t`Restart the workers, so that all processes have the same version.`,
  }),
  workers_alive: () => ({ name: workers(), detail: t`alive` }),
  workers_busy: ({ count, runs, slots }) => ({
    name: workers(),
    detail: t`Worker processes: ${count}, with ${runs} of at most ${slots} runs`,
  }),
  queue_unreadable: () => ({ name: queue(), detail: unreadable(), remedy: startServer("DATABASE_URL") }),
  queue_empty: () => ({ name: queue(), detail: t`no run waits for a worker` }),
  queue_waiting: (p) => ({ name: queue(), detail: waiting(p) }),
  queue_slow: (p) => ({
    name: queue(),
    detail: waiting(p),
    remedy: t`Start more workers, or increase OFFING_WORKER_CONCURRENCY. A run of a graph that no worker has waits for one.`,
  }),
  queue_without_worker: (p) => ({ name: queue(), detail: waiting(p), remedy: t`Start a worker.` }),
  disk_free: ({ gb, folder }) => ({ name: disk(), detail: t`${gb} GB free for ${folder}` }),
  disk_full: ({ gb, folder, min_gb }) => ({
    name: disk(),
    detail: t`${gb} GB free for ${folder}`,
    remedy: t`Free ${min_gb} GB, or set OFFING_HOME to another disk.`,
  }),
  search_works: ({ engines }) => ({ name: search(), detail: engines }),
  search_problem: () => ({ name: search() }),
  mcp_none: () => ({ name: mcp(), detail: t`none configured` }),
  mcp_works: ({ servers }) => ({ name: mcp(), detail: servers }),
  mcp_invalid: () => ({ name: mcp() }),
  mcp_unusable: () => ({
    name: mcp(),
    remedy: t`Review its tools in Settings, MCP servers, or with \`offing mcp check\`.`,
  }),
  sandbox_running: () => ({ name: sandbox(), detail: t`is being tested, which takes a few seconds` }),
  sandbox_failed: ({ error }) => ({
    name: sandbox(),
    detail: t`the test failed (${error})`,
    remedy: t`See the log of the API.`,
  }),
  sandbox_works: () => ({ name: sandbox() }),
  sandbox_off: () => ({ name: sandbox(), detail: t`turned off by OFFING_SANDBOX; runs cannot execute code` }),
  sandbox_none: () => ({ name: sandbox(), remedy: t`Install bubblewrap or the extra \`sandbox\`.` }),
};

/** Return the texts of a check. A server that is newer than the page may send codes that it does not know. */
export function checkText(check: Check): CheckText {
  const known =
    check.code !== null && Object.hasOwn(TEXTS, check.code)
      ? TEXTS[check.code]({ ...PARAMETERS, ...check.parameters })
      : {};
  return { name: check.name, detail: check.detail, remedy: check.remedy ?? "", ...known };
}
