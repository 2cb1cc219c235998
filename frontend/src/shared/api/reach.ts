/** Whether the server can be reached. The only home of that knowledge: a request that fails raises the suspicion here. */

import { useSyncExternalStore } from "react";

/** `unready`: the server answers, and what it needs does not. */
export type Trouble = "unreachable" | "unready";

export interface Away {
  trouble: Trouble;
  /** Milliseconds since the epoch. */
  since: number;
}

/** Waits between two looks, in milliseconds; the last one goes on. */
const WAITS = [500, 1_000, 2_000, 4_000];

const READY = "/api/v1/health/ready";

let away: Away | null = null;
let looking = false;
let timer: ReturnType<typeof setTimeout> | undefined;
const hearers = new Set<() => void>();

function change(next: Away | null): void {
  away = next;
  for (const hear of hearers) hear();
}

async function trouble(): Promise<Trouble | null> {
  try {
    const response = await globalThis.fetch(new URL(READY, globalThis.location.origin));
    return response.ok ? null : "unready";
  } catch {
    return "unreachable"; // that is the answer
  }
}

async function look(nth: number): Promise<void> {
  const found = await trouble();
  if (!looking) return;
  if (found === null) {
    looking = false;
    if (away) change(null);
    return;
  }
  if (away?.trouble !== found) change({ trouble: found, since: away?.since ?? Date.now() });
  timer = setTimeout(() => look(nth + 1), WAITS[Math.min(nth, WAITS.length - 1)]);
}

/** Look whether the server is there, and go on looking until it is. One failed request alone does not mean that. */
export function suspectAway(): void {
  if (looking) return;
  looking = true;
  look(0);
}

/** For tests: nothing is known. */
export function forgetReach(): void {
  clearTimeout(timer);
  looking = false;
  away = null;
}

function subscribe(hear: () => void): () => void {
  hearers.add(hear);
  return () => hearers.delete(hear);
}

/** `null`: the server is there, as far as is known. */
export function useAway(): Away | null {
  return useSyncExternalStore(subscribe, () => away);
}
