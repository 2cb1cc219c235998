import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useSyncExternalStore } from "react";
import { applyEvents } from "./apply-events";
import type { StreamEvent, StreamState } from "./connection";
import type { StreamHub } from "./hub";

const HubContext = createContext<StreamHub | null>(null);

/** Events of a burst are applied together, at most this number of milliseconds late. */
const BATCH_MS = 30;

/** Applies all events of the hub to the query cache. */
export function StreamProvider({ hub, children }: { hub: StreamHub; children: ReactNode }) {
  const client = useQueryClient();
  useEffect(() => {
    let pending: StreamEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | null = null;
    const flush = () => {
      const events = pending;
      pending = [];
      timer = null;
      applyEvents(client, events);
    };
    const stop = hub.onEvent((event) => {
      pending.push(event);
      timer ??= setTimeout(flush, BATCH_MS);
    });
    return () => {
      stop();
      if (timer) clearTimeout(timer);
    };
  }, [client, hub]);
  return <HubContext value={hub}>{children}</HubContext>;
}

/** Follow a run while it is active. `after` is the last step of the first snapshot. */
export function useRunEvents(runId: string, after: number, active: boolean): void {
  const hub = useContext(HubContext);
  // Only the first value matters: from then on the hub tracks the last step of this tab.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => (active && hub ? hub.watch(runId, after) : undefined), [hub, runId, active]);
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
