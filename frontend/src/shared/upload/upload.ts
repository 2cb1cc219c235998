/**
 * The uploads of this page, by the draft that they belong to. They continue while no view shows them, and a view that
 * is opened again shows the whole state.
 */

import { t } from "@lingui/core/macro";
import { sessionTenant } from "../api/session";
import { deleteDraft, readDraft, storeDraft } from "../ui/drafts";
import { addUnsavedCheck } from "../ui/unsaved-input";
import { type PickedFile, type PickedFolder, splitIntoChunks } from "./read-drop";
import { failedResults, type UploadResult, uploadChunk } from "./upload-chunk";

/** Number of consecutive failed requests after which the remaining files are not sent. */
const MAX_CONSECUTIVE_FAILURES = 2;

export interface UploadState {
  /** Number of files added so far, and of those with a result. */
  total: number;
  done: number;
  busy: boolean;
  results: readonly UploadResult[];
  error: unknown;
  /** The last selection contains no file that the library can read. */
  hasNoReadableFiles: boolean;
  /** Number of files that were not sent because the page was closed or reloaded. */
  unsent: number;
}

/** The state that survives a reload. */
interface StoredUpload {
  results: UploadResult[];
  done: number;
  /** Collection and name of each file without a result. */
  unsent: string[];
}

const EMPTY_UPLOAD: StoredUpload = { results: [], done: 0, unsent: [] };

interface Chunk {
  collection: string;
  files: PickedFile[];
}

function listPaths({ collection, files }: Chunk): string[] {
  return files.map(({ name }) => `${collection}/${name}`);
}

function removeNames(names: readonly string[], removed: readonly string[]): string[] {
  const excluded = new Set(removed);
  return names.filter((name) => !excluded.has(name));
}

/** Sends files in chunks and keeps the result of each. A failed request does not stop the others. */
export class Upload {
  readonly #tenant = sessionTenant();
  readonly #listeners = new Set<() => void>();
  #stored: StoredUpload;
  #waiting: string[] = [];
  #activeSends = 0;
  #error: unknown = null;
  #hasNoReadableFiles = false;
  #isCancelled = false;
  #state: UploadState;

  constructor(private readonly draft: string) {
    this.#stored = { ...EMPTY_UPLOAD, ...readDraft<Partial<StoredUpload>>(draft, EMPTY_UPLOAD) };
    this.#state = this.#buildState();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly state = (): UploadState => this.#state;

  /** Upload files. Single files are added to `collection`; a folder becomes its own collection. */
  async send(picked: Promise<PickedFolder[]> | PickedFolder[], collection: string): Promise<void> {
    this.#activeSends += 1;
    this.#error = null;
    this.#hasNoReadableFiles = false;
    this.#notify();
    try {
      await this.#sendAll(this.#enqueue(await picked, collection));
    } catch (error) {
      this.#error = error;
    } finally {
      this.#activeSends -= 1;
      if (this.#activeSends === 0) this.#markWaitingUnsent();
      this.#notify();
    }
  }

  /** Remove the finished results. Files that are being sent stay. */
  clear(): void {
    this.#stored = EMPTY_UPLOAD;
    this.#error = null;
    this.#hasNoReadableFiles = false;
    this.#store();
  }

  /** Stop sending, showing and storing. */
  cancel(): void {
    this.#isCancelled = true;
  }

  #enqueue(picked: readonly PickedFolder[], collection: string): Chunk[] {
    const chunks = picked.flatMap(({ folder, files }) =>
      splitIntoChunks(files).map((chunk) => ({ collection: folder || collection, files: chunk })),
    );
    const names = chunks.flatMap(listPaths);
    this.#hasNoReadableFiles = names.length === 0;
    this.#waiting = [...new Set([...this.#waiting, ...names])];
    this.#stored = { ...this.#stored, unsent: removeNames(this.#stored.unsent, names) };
    this.#store();
    return chunks;
  }

  async #sendAll(chunks: readonly Chunk[]): Promise<void> {
    let failures = 0;
    for (const chunk of chunks) {
      if (this.#isStopped()) return;
      const results =
        failures < MAX_CONSECUTIVE_FAILURES
          ? await uploadChunk(chunk.files, chunk.collection)
          : failedResults(chunk.files, t`Not sent, because the files before it could not be sent. Add it again later.`);
      failures = results.every((one) => one.outcome === "failed") ? failures + 1 : 0;
      this.#recordResults(chunk, results);
    }
  }

  #recordResults(chunk: Chunk, newResults: readonly UploadResult[]): void {
    const { results, done, unsent } = this.#stored;
    this.#waiting = removeNames(this.#waiting, listPaths(chunk));
    this.#stored = { results: [...results, ...newResults], done: done + chunk.files.length, unsent };
    this.#store();
  }

  #markWaitingUnsent(): void {
    if (this.#waiting.length === 0) return;
    this.#stored = { ...this.#stored, unsent: [...this.#stored.unsent, ...this.#waiting] };
    this.#waiting = [];
    this.#store();
  }

  /** The files of one tenant are never sent to another, whose session this page may have by now. */
  #isStopped(): boolean {
    return this.#isCancelled || this.#tenant !== sessionTenant();
  }

  #store(): void {
    if (this.#isStopped()) return;
    const { results, done, unsent } = this.#stored;
    const stored: StoredUpload = { results, done, unsent: [...unsent, ...this.#waiting] };
    if (stored.done === 0 && stored.unsent.length === 0) deleteDraft(this.draft);
    else storeDraft(this.draft, stored);
    this.#notify();
  }

  #buildState(): UploadState {
    const { results, done, unsent } = this.#stored;
    return {
      total: done + this.#waiting.length,
      done,
      busy: this.#activeSends > 0,
      results,
      error: this.#error,
      hasNoReadableFiles: this.#hasNoReadableFiles,
      unsent: unsent.length,
    };
  }

  #notify(): void {
    this.#state = this.#buildState();
    for (const listener of this.#listeners) listener();
  }
}

const uploads = new Map<string, Upload>();

/** Return the upload of a draft of the signed-in tenant. */
export function getUpload(draft: string): Upload {
  const key = JSON.stringify([sessionTenant(), draft]);
  const upload = uploads.get(key) ?? new Upload(draft);
  uploads.set(key, upload);
  return upload;
}

addUnsavedCheck(() => [...uploads.values()].some((upload) => upload.state().busy));

/** Cancel all uploads, as closing the page does. Their drafts stay. */
export function cancelUploads(): void {
  for (const upload of uploads.values()) upload.cancel();
  uploads.clear();
}
