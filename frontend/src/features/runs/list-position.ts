import type { VirtualItem } from "@tanstack/react-virtual";
import { useState } from "react";
import { useEntryKey, usePath } from "@/shared/routing/routing";

/** How a list was left. */
export interface ListPosition {
  /** How far the page was scrolled, in pixels. */
  top: number;
  /** Heights of the rows that were measured, so that the same rows stand at the same place again. */
  measurements: VirtualItem[];
  /** Id of the run at which the keyboard was. */
  current: string | null;
}

const MAX_POSITIONS = 50;

/** Positions by the entry of the browser's history in which a list was shown. */
const positions = new Map<string, ListPosition>();

function store(key: string, position: ListPosition): void {
  positions.delete(key);
  positions.set(key, position);
  const oldest = positions.keys().next().value;
  if (positions.size > MAX_POSITIONS && oldest !== undefined) positions.delete(oldest);
}

/**
 * How the list of this entry of the history was left, or `null` if it is shown for the first time, and a function that
 * notes how it is now. Back and Forward come to the same entry again, and links to a new one.
 */
export function useListPosition(): [ListPosition | null, (position: ListPosition) => void] {
  const key = useEntryKey();
  const path = usePath();
  const [saved] = useState(() => positions.get(key) ?? null);
  const [shownAt] = useState(path);
  // While the next view is loaded, the address is its own already, and the list is still shown.
  return [saved, (position) => path === shownAt && key && store(key, position)];
}
