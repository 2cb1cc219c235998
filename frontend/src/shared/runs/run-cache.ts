/** Lists and views that were fetched, after runs were changed or deleted. The pages of a long list are not fetched again. */

import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import type { Run, RunDetail } from "../api/runs";

interface RunPage {
  items: Run[];
}

function changePages(client: QueryClient, change: <P extends RunPage>(page: P) => P): void {
  for (const queryKey of [["run-list"], ["runs"]]) {
    client.setQueriesData<InfiniteData<RunPage>>({ queryKey }, (data) =>
      data ? { ...data, pages: data.pages.map(change) } : data,
    );
  }
  client.setQueriesData<RunPage>({ queryKey: ["run-list-start"] }, (page) => (page ? change(page) : page));
}

/** Put a run that the server returned into every list and view that shows it. */
export function storeRun(client: QueryClient, run: Run): void {
  changePages(client, (page) => ({
    ...page,
    // A list with a search has the matching excerpt, which other responses lack.
    items: page.items.map((one) => (one.id === run.id ? { ...run, match: one.match ?? null } : one)),
  }));
  client.setQueryData<RunDetail>(["run", run.id], (was) => (was ? { ...was, ...run, match: null } : was));
}

/** Take deleted runs out of every list and view. */
export function forgetRuns(client: QueryClient, runIds: readonly string[]): void {
  const deleted = new Set(runIds);
  changePages(client, (page) => ({ ...page, items: page.items.filter((one) => !deleted.has(one.id)) }));
  for (const runId of runIds) client.removeQueries({ queryKey: ["run", runId] });
  for (const key of ["run-list-start", "thread", "run-tree", "tags"]) client.invalidateQueries({ queryKey: [key] });
}
