/** Views whose code is fetched when they are first opened, and what is shown where a view fails. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ErrorComponentProps } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { MissingCode } from "@/shared/api/client";
import { suspectAway } from "@/shared/api/reach";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";

/**
 * A component whose code is fetched with `load`. Until then it says so, and where that fails it offers to try again or
 * to reload, in the place of the view alone. `what` as in "Loading the library…".
 */
export function fetched<P extends object>(what: string, load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const code = queryOptions({
    queryKey: ["code", what],
    queryFn: async () => {
      try {
        return { View: await load() };
      } catch {
        suspectAway();
        throw new MissingCode();
      }
    },
    retry: 1,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });
  return function Fetched(props: P) {
    const query = useQuery(code);
    if (query.data) return <query.data.View {...props} />;
    return (
      <div className="view-problem">
        <Loaded query={query} what={what}>
          {() => null}
        </Loaded>
      </div>
    );
  };
}

/** In the place of a view that threw; the rest of the page goes on. */
export function ViewProblem({ error, reset }: ErrorComponentProps) {
  return (
    <main className="view-problem">
      <ProblemNote error={error} onRetry={reset} />
    </main>
  );
}
