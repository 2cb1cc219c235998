/**
 * One event stream per browser: the tab that holds the lock reads it and sends its events to the other tabs over a
 * channel. Every tab announces the runs that it follows and their last steps. When the leading tab closes, the next one
 * takes the lock, requests these announcements and opens the stream at the lowest sequence number of each run. Repeated
 * events are harmless, see `step-log`. Without locks or channels, each tab is its own leader.
 */

import { Connection, type ConnectionOptions, type StreamEvent, type StreamState } from "./connection";
import { advanceCursor, hasSameRuns, mergeEarliest, type StreamCursor } from "./cursor";

type TabMessage =
  | { type: "follow"; tab: string; runs: [string, number][] }
  | { type: "leave"; tab: string }
  | { type: "report-runs" }
  | { type: "event"; event: StreamEvent }
  | { type: "state"; state: StreamState };

export interface Channel {
  post(message: unknown): void;
  listen(onMessage: (message: unknown) => void): void;
}

export interface HubOptions extends Pick<ConnectionOptions, "open" | "after"> {
  tab: string;
  /** `null` means that the browser has none. */
  channel: Channel | null;
  /**
   * Calls back when this tab leads. Returns a function that gives up the lead. `null` means that there are no locks, so
   * every tab leads.
   */
  lead: ((onLead: () => void) => () => void) | null;
  now(): number;
}

/** A tab without a message for this time counts as closed. Hidden tabs may be limited to one message per minute. */
const MAX_TAB_SILENCE_MS = 180_000;
const ANNOUNCE_MS = 30_000;

export class StreamHub {
  #ownCursor: StreamCursor = new Map();
  #peers = new Map<string, { runs: StreamCursor; seen: number }>();
  #isLeader = false;
  #resign: (() => void) | null = null;
  #stopAnnouncing: (() => void) | null = null;
  #state: StreamState = "idle";
  readonly #connection: Connection;
  readonly #eventListeners = new Set<(event: StreamEvent) => void>();
  readonly #stateListeners = new Set<() => void>();

  constructor(private readonly options: HubOptions) {
    this.#connection = new Connection({
      open: options.open,
      after: options.after,
      onEvent: (event) => this.#broadcast({ type: "event", event }),
      onState: (state) => this.#broadcast({ type: "state", state }),
    });
    options.channel?.listen((note) => this.#receive(note as TabMessage));
  }

  get state(): StreamState {
    return this.#state;
  }

  /** Follow a run after this sequence number. Returns a function that stops. */
  watch(runId: string, after: number): () => void {
    this.#ownCursor = new Map(this.#ownCursor).set(runId, after);
    this.#joinElection();
    this.#announceRuns();
    if (this.#isLeader) this.#updateConnection(new Map([[runId, after]]));
    return () => {
      const rest = new Map(this.#ownCursor);
      rest.delete(runId);
      this.#ownCursor = rest;
      this.#announceRuns();
      if (this.#isLeader) this.#updateConnection();
    };
  }

  onEvent(listener: (event: StreamEvent) => void): () => void {
    this.#eventListeners.add(listener);
    return () => this.#eventListeners.delete(listener);
  }

  onState(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Call this when the page is closed or enters the back-forward cache. */
  leave(): void {
    this.#post({ type: "leave", tab: this.options.tab });
    this.#stopAnnouncing?.();
    this.#stopAnnouncing = null;
    this.#isLeader = false;
    this.#connection.close();
    const resign = this.#resign;
    this.#resign = null;
    resign?.();
  }

  /** Call this when the page returns from the back-forward cache. */
  rejoin(): void {
    if (this.#ownCursor.size === 0) return;
    this.#joinElection();
    this.#announceRuns();
  }

  #joinElection(): void {
    if (this.#resign) return;
    this.#resign = (this.options.lead ?? leadImmediately)(() => this.#takeLead());
    this.#scheduleAnnouncement();
  }

  #takeLead(): void {
    this.#isLeader = true;
    this.#post({ type: "report-runs" });
    this.#updateConnection(this.#ownCursor);
  }

  #scheduleAnnouncement(): void {
    this.#stopAnnouncing = this.options.after(ANNOUNCE_MS, () => {
      this.#announceRuns();
      if (this.#isLeader) this.#updateConnection();
      this.#scheduleAnnouncement();
    });
  }

  /** A page that has left announces nothing, even if a message still reaches it. */
  #announceRuns(): void {
    if (!this.#resign) return;
    this.#post({ type: "follow", tab: this.options.tab, runs: [...this.#ownCursor] });
  }

  /** Open the stream again if the set of runs changed or `newRuns` needs earlier steps than the current cursor. */
  #updateConnection(newRuns: StreamCursor = new Map()): void {
    const oldest = this.options.now() - MAX_TAB_SILENCE_MS;
    for (const [tab, peer] of this.#peers) if (peer.seen < oldest) this.#peers.delete(tab);
    const merged = mergeEarliest([this.#ownCursor, ...[...this.#peers.values()].map((peer) => peer.runs)]);
    const at = this.#connection.cursor;
    const rewinds = [...newRuns].some(([run, seq]) => seq < (at.get(run) ?? seq));
    if (hasSameRuns(merged, at) && !rewinds) return;
    const next = new Map<string, number>();
    for (const [run, seq] of merged) next.set(run, newRuns.has(run) ? seq : (at.get(run) ?? seq));
    this.#connection.follow(next);
  }

  #post(message: TabMessage): void {
    this.options.channel?.post(message);
  }

  /** Send a message to the other tabs and to this one. */
  #broadcast(message: TabMessage): void {
    this.#post(message);
    this.#receive(message);
  }

  #receive(message: TabMessage): void {
    if (message.type === "event") this.#receiveEvent(message.event);
    else if (message.type === "state") this.#receiveState(message.state);
    else if (message.type === "report-runs") this.#announceRuns();
    else if (this.#isLeader) this.#receivePeer(message);
  }

  #receivePeer(message: Extract<TabMessage, { type: "follow" | "leave" }>): void {
    if (message.type === "leave") {
      this.#peers.delete(message.tab);
      this.#updateConnection();
      return;
    }
    const previous = this.#peers.get(message.tab)?.runs ?? new Map<string, number>();
    const runs = new Map(message.runs);
    const newRuns = new Map(message.runs.filter(([run]) => !previous.has(run)));
    if (runs.size > 0) this.#peers.set(message.tab, { runs, seen: this.options.now() });
    else this.#peers.delete(message.tab);
    this.#updateConnection(newRuns);
    this.#post({ type: "state", state: this.#state });
  }

  #receiveEvent(event: StreamEvent): void {
    const seq = (event.data as { seq?: unknown } | null)?.seq;
    if (event.name === "step" && typeof seq === "number")
      this.#ownCursor = advanceCursor(this.#ownCursor, event.runId, seq);
    for (const listener of this.#eventListeners) listener(event);
    if (event.name !== "end") return;
    const rest = new Map(this.#ownCursor);
    rest.delete(event.runId);
    this.#ownCursor = rest;
    for (const peer of this.#peers.values()) {
      peer.runs = new Map([...peer.runs].filter(([run]) => run !== event.runId));
    }
  }

  #receiveState(state: StreamState): void {
    this.#state = state;
    for (const listener of this.#stateListeners) listener();
  }
}

function leadImmediately(onLead: () => void): () => void {
  onLead();
  return () => undefined;
}
