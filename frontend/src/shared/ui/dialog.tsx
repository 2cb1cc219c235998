import { type ReactNode, useEffect, useRef } from "react";
import { classNames } from "./class-names";
import styles from "./dialog.module.css";

interface DialogProps {
  open: boolean;
  onClose(): void;
  title: string;
  sheet?: boolean;
  /** As wide as a page of text. */
  wide?: boolean;
  children: ReactNode;
}

/** Return whether a modal dialog is open. Nothing behind it may react to the keyboard. */
export function isDialogOpen(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

/**
 * A modal dialog on the browser's own element: focus stays inside, Escape closes it. `sheet` opens it from the bottom
 * edge.
 */
export function Dialog({ open, onClose, title, sheet = false, wide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (!open || !dialog) return;
    const focusedBefore = document.activeElement;
    if (!dialog.open) dialog.showModal();
    return () => {
      if (focusedBefore instanceof HTMLElement) focusedBefore.focus();
    };
  }, [open]);
  if (!open) return null;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape is the dialog's own
    <dialog
      ref={element}
      className={classNames(styles.dialog, sheet && styles.sheet, wide && styles.wide)}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <div>
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
