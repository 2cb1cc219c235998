import { useState } from "react";
import { toggled } from "@/shared/ui/toggled";

export interface Selection {
  ids: ReadonlySet<string>;
  has(id: string): boolean;
  toggle(id: string): void;
  /** Select everything from the one that was toggled last to `id`, in the order of the list. */
  extend(id: string, listed: readonly { id: string }[]): void;
  set(ids: readonly string[]): void;
  clear(): void;
}

/** Rows of a list that a person has selected. */
export function useSelection(): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [last, setLast] = useState<string | null>(null);
  const toggle = (id: string) => {
    setIds(toggled(ids, id));
    setLast(id);
  };
  const extend = (id: string, listed: readonly { id: string }[]) => {
    const [from, to] = [listed.findIndex((one) => one.id === last), listed.findIndex((one) => one.id === id)];
    if (from < 0 || to < 0) return toggle(id);
    const range = listed.slice(Math.min(from, to), Math.max(from, to) + 1);
    setIds(new Set([...ids, ...range.map((one) => one.id)]));
  };
  return {
    ids,
    has: (id) => ids.has(id),
    toggle,
    extend,
    set: (all) => setIds(new Set(all)),
    clear: () => setIds(new Set()),
  };
}
