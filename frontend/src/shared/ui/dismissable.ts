import { type KeyboardEvent, type RefObject, useEffect, useRef } from "react";

/**
 * Behavior of a panel that opens beside its button: Escape and a click outside close it, and Escape returns the focus
 * to the button. Put `box` and `onKeyDown` on the element that contains both.
 */
export function useDismissable<E extends HTMLElement>(
  open: boolean,
  close: () => void,
): { box: RefObject<E | null>; onKeyDown(event: KeyboardEvent): void } {
  const box = useRef<E>(null);
  const latest = useRef(close);
  useEffect(() => {
    latest.current = close;
  });

  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) latest.current();
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open) return;
    event.stopPropagation();
    latest.current();
    box.current?.querySelector("button")?.focus();
  };
  return { box, onKeyDown };
}
