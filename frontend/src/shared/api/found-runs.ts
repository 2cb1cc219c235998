import { queryOptions } from "@tanstack/react-query";
import { fetchRuns } from "./runs";

/** The runs that match the words of a palette best, or without words some pinned runs and the latest. */
export function foundRunsQuery(search: string, limit: number) {
  return queryOptions({
    queryKey: ["runs-found", search, limit],
    queryFn: async ({ signal }) => {
      const { pinned = [], items } = await fetchRuns({ q: search || undefined }, null, limit, signal);
      return [...pinned.slice(0, Math.ceil(limit / 2)), ...items].slice(0, limit);
    },
  });
}
