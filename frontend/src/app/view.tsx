/** Views whose code is loaded when they are first opened, and the error of a view that failed. */

import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ErrorComponentProps, useRouter } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { ViewLoadError } from "@/shared/api/client";
import { checkServer } from "@/shared/api/server-status";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { hasUnsavedInput } from "@/shared/ui/unsaved-input";

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
        throw new ViewLoadError(hasUnsavedInput());
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

/**
 * Shown instead of a view that threw an error. The navigation and the other views keep working. A retry drops the data
 * that only the failed view used, which may be the cause, and renders the view again.
 */
export function ViewError({ error, info, reset }: ErrorComponentProps) {
  const client = useQueryClient();
  const router = useRouter();
  const retry = async () => {
    client.removeQueries({ type: "inactive" });
    await router.invalidate();
    reset();
  };
  return (
    <main className="view-problem">
      <ProblemNote error={error} onRetry={retry} details={describeError(error, info?.componentStack)} />
    </main>
  );
}

/** Number of lines of a stack that a report needs. */
const MAX_STACK_LINES = 12;

/** Return what a report of an error needs. It has the address without its parameters, which may contain a question. */
export function describeError(error: unknown, componentStack: string | undefined): string {
  const stack = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return [
    `Offing web UI at ${location.pathname}, ${new Date().toISOString()}`,
    navigator.userAgent,
    firstLines(stack),
    firstLines(componentStack?.trim() ?? ""),
  ]
    .filter(Boolean)
    .join("\n\n");
}

function firstLines(text: string): string {
  return text.split("\n").slice(0, MAX_STACK_LINES).join("\n");
}
