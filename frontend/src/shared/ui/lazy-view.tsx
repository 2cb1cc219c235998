/** Parts of the page whose code is loaded when they are first shown. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ComponentType } from "react";
import { ViewLoadError } from "../api/client";
import { checkServer } from "../api/server-status";
import { Loaded } from "./loaded";
import { hasUnsavedInput } from "./unsaved-input";

/** Number of views that were created, which identifies each of them. */
let viewCount = 0;

/**
 * Create a component whose code is loaded with `load`. Until then it shows that it is loading. If loading fails, it
 * offers to retry or to reload the page; the other views keep working. `label` is used as in "Loading the library…".
 * With `isSilent`, nothing is shown while it is loading: for a small part of a line.
 */
export function lazyView<P extends object>(
  label: MessageDescriptor,
  load: () => Promise<ComponentType<P>>,
  isSilent = false,
): ComponentType<P> {
  viewCount += 1;
  const code = queryOptions({
    // Several views can have the same label.
    queryKey: ["code", viewCount],
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
    if (isSilent && !query.error) return null;
    return (
      <div className="view-problem">
        <Loaded query={query} label={i18n._(label)}>
          {() => null}
        </Loaded>
      </div>
    );
  };
}
