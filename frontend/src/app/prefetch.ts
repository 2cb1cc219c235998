/**
 * Starts to load what the first screen needs before anything is rendered: its code, the code of the parts that it always
 * shows, and its data. Otherwise each would wait for the one before it. What fails here is tried again, and its error is
 * shown, by the view that needs it.
 */

import type { QueryClient } from "@tanstack/react-query";
import { recentRunsQuery, runListQuery, runQuery } from "@/shared/api/runs";
import { sessionQuery } from "@/shared/api/session";
import { HomePage, RunPage, RunsPage } from "./router";

const RUN_PATH = /^\/runs\/([\w-]{36})$/;

/** Resolves when the code that the first screen shows at once is loaded, or has failed to load. Never rejects. */
export async function prefetchScreen(
  client: QueryClient,
  location: { pathname: string; search: string },
): Promise<void> {
  const { pathname, search } = location;
  if (pathname.startsWith("/shared/")) return;
  client.prefetchQuery(sessionQuery);
  const runId = RUN_PATH.exec(pathname)?.[1];
  try {
    if (pathname === "/") await prefetchHome(client);
    else if (pathname === "/runs") await prefetchRuns(client, search);
    else if (runId) await prefetchRun(client, runId, search);
  } catch {
    // The view loads it again when it is shown, and shows the error.
  }
}

async function prefetchHome(client: QueryClient): Promise<void> {
  client.prefetchQuery(recentRunsQuery(""));
  const { LatestRuns } = await import("@/features/home/home-page");
  await Promise.all([HomePage.preload(), LatestRuns.preload()]);
}

async function prefetchRuns(client: QueryClient, search: string): Promise<void> {
  if (search === "") client.prefetchInfiniteQuery(runListQuery({}));
  const { RunListView } = await import("./runs-page");
  await Promise.all([RunsPage.preload(), RunListView.preload()]);
}

async function prefetchRun(client: QueryClient, runId: string, search: string): Promise<void> {
  client.prefetchQuery(runQuery(runId));
  const { preloadParts } = await import("./run-page");
  const isTimeline = new URLSearchParams(search).get("tab") === "timeline";
  await Promise.all([RunPage.preload(), preloadParts(isTimeline)]);
}
