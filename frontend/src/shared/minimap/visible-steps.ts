/**
 * The steps that the timeline shows, kept outside the state of a component: they change with every frame while a reader
 * scrolls, and only their band in the minimap is rendered again.
 */

/** First and last step, both included. `null` means that the timeline is not shown. */
export type StepRange = readonly [number, number] | null;

export class VisibleSteps {
  #range: StepRange = null;
  readonly #listeners = new Set<() => void>();

  readonly get = (): StepRange => this.#range;

  readonly set = (range: StepRange): void => {
    if (range?.[0] === this.#range?.[0] && range?.[1] === this.#range?.[1]) return;
    this.#range = range;
    for (const listener of this.#listeners) listener();
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}
