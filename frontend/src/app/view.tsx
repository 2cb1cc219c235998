/** Views whose code is loaded when they are first opened, and the error of a view that failed. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ErrorComponentProps } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { ViewLoadError } from "@/shared/api/client";
import { checkServer } from "@/shared/api/server-status";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";

/**
 * Create a component whose code is loaded with `load`. Until then it shows that it is loading. If loading fails, it
 * offers to retry or to reload the page; the other views keep working. `label` is used as in "Loading the library…".
 */
export function lazyView<P extends object>(label: string, load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const code = queryOptions({
    queryKey: ["code", label],
    queryFn: async () => {
      try {
        return { View: await load() };
      } catch {
        checkServer();
        throw new ViewLoadError();
      }
    },
    retry: 1,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });
  return function LazyView(props: P) {
    const query = useQuery(code);
    if (query.data) return <query.data.View {...props} />;
    return (
      <div className="view-problem">
        <Loaded query={query} label={label}>
          {() => null}
        </Loaded>
      </div>
    );
  };
}

/** Shown instead of a view that threw an error. The rest of the page keeps working. */
export function ViewError({ error, reset }: ErrorComponentProps) {
  return (
    <main className="view-problem">
      <ProblemNote error={error} onRetry={reset} />
    </main>
  );
}
