import { useSyncExternalStore } from "react";

/** What a person chose in this browser about the look of the page. */
export interface RootChoice<T extends string> {
  read(): T;
  set(value: T): void;
  /** Return the choice, and render again when it changes. */
  use(): T;
}

/**
 * Create a choice that is an attribute of the root element, `data-<name>`, and is kept in this browser. The first of
 * `values` is the default, for which there is no attribute. `public/start.js` applies the stored one before the first
 * paint.
 */
export function rootChoice<T extends string>(name: string, values: readonly [T, ...T[]]): RootChoice<T> {
  const key = `offing.${name}`;
  const listeners = new Set<() => void>();
  const read = () => values.slice(1).find((value) => value === document.documentElement.dataset[name]) ?? values[0];
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const set = (value: T) => {
    const isDefault = value === values[0];
    if (isDefault) delete document.documentElement.dataset[name];
    else document.documentElement.dataset[name] = value;
    try {
      if (isDefault) localStorage.removeItem(key);
      else localStorage.setItem(key, value);
    } catch {
      // Without storage, the choice lasts until the page is closed.
    }
    for (const listener of listeners) listener();
  };
  return { read, set, use: () => useSyncExternalStore(subscribe, read) };
}
