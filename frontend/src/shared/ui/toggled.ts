/** Return the set with an element that it lacked, or without one that it had. */
export function toggled<T>(elements: ReadonlySet<T>, element: T): ReadonlySet<T> {
  const next = new Set(elements);
  if (!next.delete(element)) next.add(element);
  return next;
}
