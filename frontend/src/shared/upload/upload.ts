/**
 * The uploads of this page, by the draft that they belong to. They go on while no view shows them, and the only state of
 * an upload is here, so that a view which is opened anew shows all of it.
 */

import { sessionTenant } from "../api/session";
import { forgetDraft, readDraft, storeDraft } from "../ui/drafts";
import { batches, type Picked, type PickedFile } from "./read-drop";
import { failed, sendGroup, type UploadResult } from "./send-group";

/** Requests in succession that failed; then the rest is not sent. */
const MAX_FAILURES = 2;

export interface UploadState {
  /** Files handed in so far, and how many of them the server has answered for. */
  total: number;
  done: number;
  busy: boolean;
  results: readonly UploadResult[];
  error: unknown;
  /** What was picked last holds no file that can be read. */
  empty: boolean;
  /** Files that were never sent, because the page was left or reloaded before their turn. */
  unsent: number;
}

/** What a reload finds. */
interface Kept {
  results: UploadResult[];
  done: number;
  /** Collection and name of each file that the server has not answered for. */
  unsent: string[];
}

const NOTHING: Kept = { results: [], done: 0, unsent: [] };

interface Group {
  collection: string;
  files: PickedFile[];
}

function namesOf({ collection, files }: Group): string[] {
  return files.map(({ name }) => `${collection}/${name}`);
}

function without(names: readonly string[], gone: readonly string[]): string[] {
  const dropped = new Set(gone);
  return names.filter((name) => !dropped.has(name));
}

/** Sends files a handful at a time and keeps the outcome of each; a request that fails does not end the others. */
export class Upload {
  readonly #tenant = sessionTenant();
  readonly #hearers = new Set<() => void>();
  #kept: Kept;
  #waiting: string[] = [];
  #underWay = 0;
  #error: unknown = null;
  #empty = false;
  #forgotten = false;
  #state: UploadState;

  constructor(private readonly draft: string) {
    this.#kept = { ...NOTHING, ...readDraft<Partial<Kept>>(draft, NOTHING) };
    this.#state = this.#seen();
  }

  readonly subscribe = (hear: () => void): (() => void) => {
    this.#hearers.add(hear);
    return () => this.#hearers.delete(hear);
  };

  readonly state = (): UploadState => this.#state;

  /** Single files join `collection`; a folder is a collection of its own. */
  async send(picking: Promise<Picked[]> | Picked[], collection: string): Promise<void> {
    this.#underWay += 1;
    this.#error = null;
    this.#empty = false;
    this.#changed();
    try {
      await this.#sendAll(this.#handedIn(await picking, collection));
    } catch (error) {
      this.#error = error;
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#nothingWaits();
      this.#changed();
    }
  }

  /** Forgets what has been answered for; files that are being sent stay. */
  clear(): void {
    this.#kept = NOTHING;
    this.#error = null;
    this.#empty = false;
    this.#store();
  }

  /** Nothing more is sent, shown or kept. */
  forget(): void {
    this.#forgotten = true;
  }

  #handedIn(picked: readonly Picked[], collection: string): Group[] {
    const groups = picked.flatMap(({ folder, files }) =>
      batches(files).map((group) => ({ collection: folder || collection, files: group })),
    );
    const names = groups.flatMap(namesOf);
    this.#empty = names.length === 0;
    this.#waiting = [...new Set([...this.#waiting, ...names])];
    this.#kept = { ...this.#kept, unsent: without(this.#kept.unsent, names) };
    this.#store();
    return groups;
  }

  async #sendAll(groups: readonly Group[]): Promise<void> {
    let failures = 0;
    for (const group of groups) {
      if (this.#isOver()) return;
      const sent =
        failures < MAX_FAILURES
          ? await sendGroup(group.files, group.collection)
          : failed(group.files, "It was not sent, because those before it could not be. Add it again later.");
      failures = sent.every((one) => one.outcome === "failed") ? failures + 1 : 0;
      this.#answered(group, sent);
    }
  }

  #answered(group: Group, sent: readonly UploadResult[]): void {
    const { results, done, unsent } = this.#kept;
    this.#waiting = without(this.#waiting, namesOf(group));
    this.#kept = { results: [...results, ...sent], done: done + group.files.length, unsent };
    this.#store();
  }

  #nothingWaits(): void {
    if (this.#waiting.length === 0) return;
    this.#kept = { ...this.#kept, unsent: [...this.#kept.unsent, ...this.#waiting] };
    this.#waiting = [];
    this.#store();
  }

  /** The files of one tenant never go to another one, whose session this page may have by now. */
  #isOver(): boolean {
    return this.#forgotten || this.#tenant !== sessionTenant();
  }

  #store(): void {
    if (this.#isOver()) return;
    const { results, done, unsent } = this.#kept;
    const kept: Kept = { results, done, unsent: [...unsent, ...this.#waiting] };
    if (kept.done === 0 && kept.unsent.length === 0) forgetDraft(this.draft);
    else storeDraft(this.draft, kept);
    this.#changed();
  }

  #seen(): UploadState {
    const { results, done, unsent } = this.#kept;
    return {
      total: done + this.#waiting.length,
      done,
      busy: this.#underWay > 0,
      results,
      error: this.#error,
      empty: this.#empty,
      unsent: unsent.length,
    };
  }

  #changed(): void {
    this.#state = this.#seen();
    for (const hear of this.#hearers) hear();
  }
}

const uploads = new Map<string, Upload>();

/** The upload of a draft of whoever is signed in. */
export function uploadOf(draft: string): Upload {
  const key = JSON.stringify([sessionTenant(), draft]);
  const held = uploads.get(key) ?? new Upload(draft);
  uploads.set(key, held);
  return held;
}

/** Ends all uploads, as leaving the page does. What their drafts hold stays. */
export function forgetUploads(): void {
  for (const upload of uploads.values()) upload.forget();
  uploads.clear();
}
