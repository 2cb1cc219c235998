/**
 * One event stream for any number of runs. The browser reconnects on its own with the id of the last event. When it
 * gives up, this class opens a new stream from the last step seen, after an increasing delay. It stops following a run
 * at its `end` event and closes when no run is left.
 */

import { advanceCursor, renderCursor, type StreamCursor } from "./cursor";

export const EVENT_NAMES = ["step", "run", "live", "draft", "draft_end", "end"] as const;

export interface StreamEvent {
  runId: string;
  name: (typeof EVENT_NAMES)[number];
  /** The event's JSON, parsed. */
  data: unknown;
}

/** `idle` means that there is nothing to follow, `lost` that the connection is being retried. */
export type StreamState = "idle" | "opening" | "open" | "lost";

export interface ConnectionOptions {
  open(address: string): EventSource;
  onEvent(event: StreamEvent): void;
  onState(state: StreamState): void;
  /** Calls back after this number of milliseconds. Returns a function that cancels the call. */
  after(ms: number, call: () => void): () => void;
}

const MAX_RETRY_DELAY_MS = 15_000;

function objectOrEmpty(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** Return the event, or `null` if its data does not match the contract. */
export function parseEvent(name: StreamEvent["name"], text: string): StreamEvent | null {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    // An event that is not JSON is skipped. A missing step is a gap in the log, which is fetched, and the next event of
    // the run contains its state.
    return null;
  }
  const fields = objectOrEmpty(data);
  const run = fields.run_id ?? fields.id;
  return typeof run === "string" ? { runId: run, name, data } : null;
}

export class Connection {
  #cursor: StreamCursor = new Map();
  #source: EventSource | null = null;
  #failures = 0;
  #cancelRetry: (() => void) | null = null;

  constructor(private readonly options: ConnectionOptions) {}

  get cursor(): StreamCursor {
    return this.#cursor;
  }

  /** Follow exactly these runs, from these sequence numbers. */
  follow(cursor: StreamCursor): void {
    this.#cursor = cursor;
    this.#failures = 0;
    this.#open();
  }

  close(): void {
    this.#cursor = new Map();
    this.#disconnect();
    this.options.onState("idle");
  }

  #disconnect(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    this.#source?.close();
    this.#source = null;
  }

  #open(): void {
    this.#disconnect();
    if (this.#cursor.size === 0) {
      this.options.onState("idle");
      return;
    }
    this.options.onState(this.#failures > 0 ? "lost" : "opening");
    const source = this.options.open(`/api/v1/events?cursor=${encodeURIComponent(renderCursor(this.#cursor))}`);
    this.#source = source;
    source.onopen = () => {
      this.#failures = 0;
      this.options.onState("open");
    };
    source.onerror = () => this.#handleError(source);
    for (const name of EVENT_NAMES) {
      source.addEventListener(name, (message) => this.#handleMessage(name, (message as MessageEvent<string>).data));
    }
  }

  #handleMessage(name: StreamEvent["name"], text: string): void {
    const event = parseEvent(name, text);
    if (!event) return;
    const seq = objectOrEmpty(event.data).seq;
    if (name === "step" && typeof seq === "number") this.#cursor = advanceCursor(this.#cursor, event.runId, seq);
    this.options.onEvent(event);
    if (name === "end") this.#removeRun(event.runId);
  }

  #removeRun(runId: string): void {
    const rest = new Map(this.#cursor);
    rest.delete(runId);
    this.#cursor = rest;
    if (rest.size === 0) this.close();
  }

  #handleError(source: EventSource): void {
    if (source !== this.#source) return;
    this.options.onState("lost");
    if (source.readyState !== 2) return;
    this.#failures += 1;
    const delay = Math.min(MAX_RETRY_DELAY_MS, 500 * 2 ** this.#failures);
    this.#disconnect();
    this.#cancelRetry = this.options.after(delay, () => this.#open());
  }
}
