import { type FocusEvent, type ReactNode, useEffect, useRef, useState } from "react";
import styles from "./tooltip.module.css";
import { useOverlays } from "./use-overlays";

/** How long the pointer rests on the element before the tooltip opens, in milliseconds. */
const OPEN_DELAY_MS = 500;

interface TooltipProps {
  text: string;
  /** The element that is described. It has the text, or a longer one, as its accessible name or description. */
  children: ReactNode;
}

/**
 * Shows a text while the pointer rests on an element or the keyboard has focused it. Phones show no tooltips, so the text
 * must not be needed to use the element.
 */
export function Tooltip({ text, children }: TooltipProps) {
  const [isWanted, setWanted] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const { overlays } = useOverlays(isWanted);
  const box = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!isWanted) return setOpen(false);
    const timer = setTimeout(() => setOpen(true), OPEN_DELAY_MS);
    const handleKeyDown = (event: KeyboardEvent) => event.key === "Escape" && setWanted(false);
    document.addEventListener("keydown", handleKeyDown);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("keydown", handleKeyDown);
    };
  }, [isWanted]);
  const handleFocus = (event: FocusEvent) => event.target.matches(":focus-visible") && setWanted(true);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only notes where pointer and focus are
    <span
      ref={box}
      className={styles.box}
      onPointerEnter={(event) => event.pointerType === "mouse" && setWanted(true)}
      onPointerLeave={() => setWanted(false)}
      onPointerDown={() => setWanted(false)}
      onFocus={handleFocus}
      onBlur={() => setWanted(false)}
    >
      {children}
      {isOpen && overlays && <overlays.TooltipBubble trigger={box} text={text} />}
    </span>
  );
}
