import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useSyncExternalStore } from "react";
import { applyEvents } from "./apply-events";
import type { StreamEvent, StreamState } from "./connection";
import type { StreamHub } from "./hub";

const HubContext = createContext<StreamHub | null>(null);

/** Events of a burst are applied together, at most so many milliseconds late. */
const GATHER_MS = 30;

/** Feeds everything the hub hears into the query cache. */
export function StreamProvider({ hub, children }: { hub: StreamHub; children: ReactNode }) {
  const client = useQueryClient();
  useEffect(() => {
    let waiting: StreamEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | null = null;
    const flush = () => {
      const events = waiting;
      waiting = [];
      timer = null;
      applyEvents(client, events);
    };
    const stop = hub.onEvent((event) => {
      waiting.push(event);
      timer ??= setTimeout(flush, GATHER_MS);
    });
    return () => {
      stop();
      if (timer) clearTimeout(timer);
    };
  }, [client, hub]);
  return <HubContext value={hub}>{children}</HubContext>;
}

/** Follows a run while it is active. `after`: where the first snapshot stood. */
export function useRunEvents(run: string, after: number, active: boolean): void {
  const hub = useContext(HubContext);
  // Only the first place matters: from then on the hub knows how far this tab has come.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => (active && hub ? hub.watch(run, after) : undefined), [hub, run, active]);
}

const idle = (): StreamState => "idle";

export function useStreamState(): StreamState {
  const hub = useContext(HubContext);
  return useSyncExternalStore(
    (changed) => hub?.onState(changed) ?? (() => undefined),
    () => hub?.state ?? "idle",
    idle,
  );
}
