/** Parts of the page whose code is loaded when they are first shown. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { type ComponentType, useState } from "react";
import { ViewLoadError } from "../api/client";
import { checkServer } from "../api/server-status";
import { Loaded } from "./loaded";
import { hasUnsavedInput } from "./unsaved-input";

/** Number of views that were created, which identifies each of them. */
let viewCount = 0;

/** A view whose code is loaded when it is first shown, or before. */
export type LazyView<P> = ComponentType<P> & {
  /** Load the code, so that the view is there as soon as it is shown. Never rejects: the view tries again. */
  preload(): Promise<void>;
};

/**
 * Create a component whose code is loaded with `load`. Until then it shows that it is loading. If loading fails, it
 * offers to retry or to reload the page; the other views keep working. `label` is used as in "Loading the library…".
 * With `isSilent`, nothing is shown while it is loading: for a small part of a line.
 */
export function lazyView<P extends object>(
  label: MessageDescriptor,
  load: () => Promise<ComponentType<P>>,
  isSilent = false,
): LazyView<P> {
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
  function Loading(props: P) {
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
  }
  let preloaded: ComponentType<P> = Loading;
  const View = (props: P) => {
    const [Shown] = useState(() => preloaded);
    return <Shown {...props} />;
  };
  const preload = async () => {
    try {
      preloaded = await load();
    } catch {
      // The view loads it again when it is shown, and shows the error.
    }
  };
  return Object.assign(View, { preload });
}
