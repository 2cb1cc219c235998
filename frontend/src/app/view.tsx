/** Views whose code is loaded when they are first opened, and the error of a view that failed. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ErrorComponentProps } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { ViewLoadError } from "@/shared/api/client";
import { checkServer } from "@/shared/api/server-status";
import { useLanguage } from "@/shared/language/language";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";

/**
 * Create a component whose code is loaded with `load`. Until then it shows that it is loading. If loading fails, it
 * offers to retry or to reload the page; the other views keep working. `label` is used as in "Loading the library…".
 */
export function lazyView<P extends object>(
  label: MessageDescriptor,
  load: () => Promise<ComponentType<P>>,
): ComponentType<P> {
  const code = queryOptions({
    queryKey: ["code", label.id],
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
        <Loaded query={query} label={i18n._(label)}>
          {() => null}
        </Loaded>
      </div>
    );
  };
}

/** Shown instead of a view that threw an error. The rest of the page keeps working. */
export function ViewError({ error, reset }: ErrorComponentProps) {
  useLanguage();
  return (
    <main className="view-problem">
      <ProblemNote error={error} onRetry={reset} />
    </main>
  );
}
