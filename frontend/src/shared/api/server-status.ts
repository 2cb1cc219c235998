/** Whether the server is available. A failed request starts the check. */

import { useSyncExternalStore } from "react";

/** `unready` means that the server responds, but a service that it needs does not. */
export type ServerProblem = "unreachable" | "unready";

export interface ServerOutage {
  problem: ServerProblem;
  /** Milliseconds since the epoch. */
  since: number;
}

/** Delays between two checks, in milliseconds. The last one repeats. */
const POLL_DELAYS_MS = [500, 1_000, 2_000, 4_000];

const READY_PATH = "/api/v1/health/ready";

let outage: ServerOutage | null = null;
let isPolling = false;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function setOutage(next: ServerOutage | null): void {
  outage = next;
  for (const listener of listeners) listener();
}

async function findServerProblem(): Promise<ServerProblem | null> {
  try {
    const response = await globalThis.fetch(new URL(READY_PATH, globalThis.location.origin));
    return response.ok ? null : "unready";
  } catch {
    return "unreachable"; // a failed request is the result
  }
}

async function poll(attempt: number): Promise<void> {
  const problem = await findServerProblem();
  if (!isPolling) return;
  if (problem === null) {
    isPolling = false;
    if (outage) setOutage(null);
    return;
  }
  if (outage?.problem !== problem) setOutage({ problem, since: outage?.since ?? Date.now() });
  timer = setTimeout(() => poll(attempt + 1), POLL_DELAYS_MS[Math.min(attempt, POLL_DELAYS_MS.length - 1)]);
}

/** Check whether the server is available, and repeat until it is. A single failed request does not prove an outage. */
export function checkServer(): void {
  if (isPolling) return;
  isPolling = true;
  poll(0);
}

/** Reset the state, for tests. */
export function resetServerStatus(): void {
  clearTimeout(timer);
  isPolling = false;
  outage = null;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Return the current outage. `null` means that no outage is known. */
export function useServerOutage(): ServerOutage | null {
  return useSyncExternalStore(subscribe, () => outage);
}
