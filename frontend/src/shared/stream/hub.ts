/**
 * One event stream a browser: the tab that holds the lock reads it, and tells the others over a channel.
 *
 * Every tab says which runs it wants and from where; when the leader's tab goes, the next one takes the lock, asks
 * around, and opens the stream from the earliest place anybody needs. Repeats are harmless, see `step-log`. Without
 * locks or channels a tab is its own leader.
 */

import { Connection, type ConnectionSeams, type StreamEvent, type StreamState } from "./connection";
import { advanced, earliest, type Positions, sameRuns } from "./cursor";

type Note =
  | { type: "want"; tab: string; runs: [string, number][] }
  | { type: "bye"; tab: string }
  | { type: "roll-call" }
  | { type: "event"; event: StreamEvent }
  | { type: "state"; state: StreamState };

export interface Channel {
  post(note: unknown): void;
  listen(hear: (note: unknown) => void): void;
}

export interface HubSeams extends Pick<ConnectionSeams, "open" | "after"> {
  tab: string;
  /** null: this browser has none. */
  channel: Channel | null;
  /** Calls back when this tab leads; returns how to give the lead up. null: no locks, so every tab leads itself. */
  lead: ((leading: () => void) => () => void) | null;
  now(): number;
}

/** A tab that has not been heard of for so long is taken for closed. Hidden tabs may speak once a minute only. */
const SILENT_TAB_MS = 180_000;
const REPEAT_MS = 30_000;

export class StreamHub {
  #own: Positions = new Map();
  #peers = new Map<string, { runs: Positions; seen: number }>();
  #leading = false;
  #resign: (() => void) | null = null;
  #stopRepeat: (() => void) | null = null;
  #state: StreamState = "idle";
  readonly #connection: Connection;
  readonly #eventHearers = new Set<(event: StreamEvent) => void>();
  readonly #stateHearers = new Set<() => void>();

  constructor(private readonly seams: HubSeams) {
    this.#connection = new Connection({
      open: seams.open,
      after: seams.after,
      onEvent: (event) => this.#tell({ type: "event", event }),
      onState: (state) => this.#tell({ type: "state", state }),
    });
    seams.channel?.listen((note) => this.#hear(note as Note));
  }

  get state(): StreamState {
    return this.#state;
  }

  /** Starts following a run after this sequence number. Returns how to stop. */
  watch(run: string, after: number): () => void {
    this.#own = new Map(this.#own).set(run, after);
    this.#join();
    this.#sayWants();
    if (this.#leading) this.#refollow(new Map([[run, after]]));
    return () => {
      const rest = new Map(this.#own);
      rest.delete(run);
      this.#own = rest;
      this.#sayWants();
      if (this.#leading) this.#refollow();
    };
  }

  onEvent(hear: (event: StreamEvent) => void): () => void {
    this.#eventHearers.add(hear);
    return () => this.#eventHearers.delete(hear);
  }

  onState(hear: () => void): () => void {
    this.#stateHearers.add(hear);
    return () => this.#stateHearers.delete(hear);
  }

  /** For a page that goes away, for good or into the browser's back-forward cache. */
  leave(): void {
    this.#post({ type: "bye", tab: this.seams.tab });
    this.#stopRepeat?.();
    this.#stopRepeat = null;
    this.#leading = false;
    this.#connection.close();
    const resign = this.#resign;
    this.#resign = null;
    resign?.();
  }

  /** For a page that came back. */
  rejoin(): void {
    if (this.#own.size === 0) return;
    this.#join();
    this.#sayWants();
  }

  #join(): void {
    if (this.#resign) return;
    this.#resign = (this.seams.lead ?? leadAtOnce)(() => this.#takeLead());
    this.#repeat();
  }

  #takeLead(): void {
    this.#leading = true;
    this.#post({ type: "roll-call" });
    this.#refollow(this.#own);
  }

  #repeat(): void {
    this.#stopRepeat = this.seams.after(REPEAT_MS, () => {
      this.#sayWants();
      if (this.#leading) this.#refollow();
      this.#repeat();
    });
  }

  /** A page that has left says nothing, even when the last message still reaches it. */
  #sayWants(): void {
    if (!this.#resign) return;
    this.#post({ type: "want", tab: this.seams.tab, runs: [...this.#own] });
  }

  /** Opens the stream again when the set of runs changed or `fresh` needs an earlier place than it stands at. */
  #refollow(fresh: Positions = new Map()): void {
    const oldest = this.seams.now() - SILENT_TAB_MS;
    for (const [tab, peer] of this.#peers) if (peer.seen < oldest) this.#peers.delete(tab);
    const wanted = earliest([this.#own, ...[...this.#peers.values()].map((peer) => peer.runs)]);
    const at = this.#connection.positions;
    const rewinds = [...fresh].some(([run, seq]) => seq < (at.get(run) ?? seq));
    if (sameRuns(wanted, at) && !rewinds) return;
    const next = new Map<string, number>();
    for (const [run, seq] of wanted) next.set(run, fresh.has(run) ? seq : (at.get(run) ?? seq));
    this.#connection.follow(next);
  }

  #post(note: Note): void {
    this.seams.channel?.post(note);
  }

  /** To the other tabs and to this one. */
  #tell(note: Note): void {
    this.#post(note);
    this.#hear(note);
  }

  #hear(note: Note): void {
    if (note.type === "event") this.#heardEvent(note.event);
    else if (note.type === "state") this.#heardState(note.state);
    else if (note.type === "roll-call") this.#sayWants();
    else if (this.#leading) this.#heardPeer(note);
  }

  #heardPeer(note: Extract<Note, { type: "want" | "bye" }>): void {
    if (note.type === "bye") {
      this.#peers.delete(note.tab);
      this.#refollow();
      return;
    }
    const known = this.#peers.get(note.tab)?.runs ?? new Map<string, number>();
    const runs = new Map(note.runs);
    const fresh = new Map(note.runs.filter(([run]) => !known.has(run)));
    if (runs.size > 0) this.#peers.set(note.tab, { runs, seen: this.seams.now() });
    else this.#peers.delete(note.tab);
    this.#refollow(fresh);
    this.#post({ type: "state", state: this.#state });
  }

  #heardEvent(event: StreamEvent): void {
    const seq = (event.data as { seq?: unknown } | null)?.seq;
    if (event.name === "step" && typeof seq === "number") this.#own = advanced(this.#own, event.run, seq);
    for (const hear of this.#eventHearers) hear(event);
    if (event.name !== "end") return;
    const rest = new Map(this.#own);
    rest.delete(event.run);
    this.#own = rest;
    for (const peer of this.#peers.values()) {
      peer.runs = new Map([...peer.runs].filter(([run]) => run !== event.run));
    }
  }

  #heardState(state: StreamState): void {
    this.#state = state;
    for (const hear of this.#stateHearers) hear();
  }
}

function leadAtOnce(leading: () => void): () => void {
  leading();
  return () => undefined;
}
