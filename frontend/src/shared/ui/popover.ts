import { type KeyboardEvent, type RefObject, useEffect, useRef } from "react";

/**
 * What every panel that opens beside its button does: Escape and a click outside close it, and Escape gives the focus
 * back to the button. Put `box` on the element that holds both, and `onKeyDown` as well.
 */
export function usePopover<E extends HTMLElement>(
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
