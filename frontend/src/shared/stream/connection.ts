/**
 * One event stream for any number of runs, kept open.
 *
 * The browser reconnects by itself with the last event's id; when it gives up, this opens a new stream from the last
 * step seen, after a growing wait. It forgets a run at its `end` and closes when none is left.
 */

import { advanced, formatCursor, type Positions } from "./cursor";

export const EVENT_NAMES = ["step", "run", "live", "end"] as const;

export interface StreamEvent {
  run: string;
  name: (typeof EVENT_NAMES)[number];
  /** The event's JSON, parsed. */
  data: unknown;
}

/** `idle`: nothing to follow. `lost`: trying again. */
export type StreamState = "idle" | "opening" | "open" | "lost";

export interface ConnectionSeams {
  open(address: string): EventSource;
  onEvent(event: StreamEvent): void;
  onState(state: StreamState): void;
  /** Calls back after so many milliseconds; returns how to forget it. */
  after(ms: number, call: () => void): () => void;
}

const LONGEST_WAIT = 15_000;

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** The event, or null when its data is not what the contract says. */
export function readEvent(name: StreamEvent["name"], text: string): StreamEvent | null {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    // One that is no JSON is left out: a step that is missing is a hole in the log, which is fetched, and a run's next
    // event tells its state anew.
    return null;
  }
  const fields = record(data);
  const run = fields.run_id ?? fields.id;
  return typeof run === "string" ? { run, name, data } : null;
}

export class Connection {
  #positions: Positions = new Map();
  #source: EventSource | null = null;
  #failures = 0;
  #forgetRetry: (() => void) | null = null;

  constructor(private readonly seams: ConnectionSeams) {}

  get positions(): Positions {
    return this.#positions;
  }

  /** Follows exactly these runs from these places. */
  follow(positions: Positions): void {
    this.#positions = positions;
    this.#failures = 0;
    this.#open();
  }

  close(): void {
    this.#positions = new Map();
    this.#drop();
    this.seams.onState("idle");
  }

  #drop(): void {
    this.#forgetRetry?.();
    this.#forgetRetry = null;
    this.#source?.close();
    this.#source = null;
  }

  #open(): void {
    this.#drop();
    if (this.#positions.size === 0) {
      this.seams.onState("idle");
      return;
    }
    this.seams.onState(this.#failures > 0 ? "lost" : "opening");
    const source = this.seams.open(`/api/v1/events?cursor=${encodeURIComponent(formatCursor(this.#positions))}`);
    this.#source = source;
    source.onopen = () => {
      this.#failures = 0;
      this.seams.onState("open");
    };
    source.onerror = () => this.#failed(source);
    for (const name of EVENT_NAMES) {
      source.addEventListener(name, (message) => this.#received(name, (message as MessageEvent<string>).data));
    }
  }

  #received(name: StreamEvent["name"], text: string): void {
    const event = readEvent(name, text);
    if (!event) return;
    const seq = record(event.data).seq;
    if (name === "step" && typeof seq === "number") this.#positions = advanced(this.#positions, event.run, seq);
    this.seams.onEvent(event);
    if (name === "end") this.#forget(event.run);
  }

  #forget(run: string): void {
    const rest = new Map(this.#positions);
    rest.delete(run);
    this.#positions = rest;
    if (rest.size === 0) this.close();
  }

  #failed(source: EventSource): void {
    if (source !== this.#source) return;
    this.seams.onState("lost");
    if (source.readyState !== 2) return;
    this.#failures += 1;
    const wait = Math.min(LONGEST_WAIT, 500 * 2 ** this.#failures);
    this.#drop();
    this.#forgetRetry = this.seams.after(wait, () => this.#open());
  }
}
