/**
 * Starts to load what the first screen needs before anything is rendered: its code, the code of the parts that it always
 * shows, and its data. Otherwise each would wait for the one before it. What fails here is tried again, and its error is
 * shown, by the view that needs it.
 */

import type { QueryClient } from "@tanstack/react-query";
import { recentRunsQuery, runListQuery, runQuery } from "@/shared/api/runs";
import { sessionQuery } from "@/shared/api/session";

const RUN_PATH = /^\/runs\/([\w-]{36})$/;

const ignore = () => undefined;

export function prefetchScreen(client: QueryClient, { pathname, search }: { pathname: string; search: string }): void {
  if (pathname.startsWith("/shared/")) return;
  client.prefetchQuery(sessionQuery);
  const runId = RUN_PATH.exec(pathname)?.[1];
  if (pathname === "/") prefetchHome(client);
  else if (pathname === "/runs") prefetchRuns(client, search);
  else if (runId) prefetchRun(client, runId);
}

function prefetchHome(client: QueryClient): void {
  client.prefetchQuery(recentRunsQuery(""));
  import("@/features/home/home-page").catch(ignore);
  import("@/features/home/recent-runs").catch(ignore);
}

function prefetchRuns(client: QueryClient, search: string): void {
  if (search === "") client.prefetchInfiniteQuery(runListQuery({}));
  import("./runs-page").catch(ignore);
  import("./run-list-view").catch(ignore);
}

function prefetchRun(client: QueryClient, runId: string): void {
  client.prefetchQuery(runQuery(runId));
  import("./run-page").catch(ignore);
  import("./run-parts").catch(ignore);
}
