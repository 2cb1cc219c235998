/** Lists and views that were fetched, after runs were changed or deleted. The pages of a long list are not fetched again. */

import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import type { Run, RunDetail } from "../api/runs";

interface RunPage {
  items: Run[];
  /** Pinned runs that stand before the others. */
  pinned?: Run[];
}

function changePages(client: QueryClient, change: (runs: Run[]) => Run[]): void {
  const changePage = (page: RunPage) => ({
    ...page,
    items: change(page.items),
    ...(page.pinned && { pinned: change(page.pinned) }),
  });
  client.setQueriesData<InfiniteData<RunPage>>({ queryKey: ["run-list"] }, (data) =>
    data ? { ...data, pages: data.pages.map(changePage) } : data,
  );
  for (const queryKey of [["run-list-start"], ["runs"]]) {
    client.setQueriesData<RunPage>({ queryKey }, (page) => (page ? changePage(page) : page));
  }
}

/** Put a run that the server returned into every list and view that shows it. */
export function storeRun(client: QueryClient, run: Run): void {
  // A list with a search has the matching excerpt and the home page the minimap, which other responses lack.
  changePages(client, (runs) =>
    runs.map((one) => (one.id === run.id ? { ...run, match: one.match ?? null, minimap: one.minimap ?? null } : one)),
  );
  client.setQueryData<RunDetail>(["run", run.id], (was) => (was ? { ...was, ...run, match: null } : was));
}

/** Take deleted runs out of every list and view. */
export function forgetRuns(client: QueryClient, runIds: readonly string[]): void {
  const deleted = new Set(runIds);
  changePages(client, (runs) => runs.filter((one) => !deleted.has(one.id)));
  for (const runId of runIds) client.removeQueries({ queryKey: ["run", runId] });
  for (const key of ["run-list-start", "run-counts", "thread", "run-tree", "tags"])
    client.invalidateQueries({ queryKey: [key] });
}
