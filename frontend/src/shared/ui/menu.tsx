import { type KeyboardEvent, type ReactNode, useEffect, useId, useState } from "react";
import { usePopover } from "./popover";
import "./controls.css";

interface MenuProps {
  label: ReactNode;
  /** Accessible name of a label that is only an icon. */
  name?: string;
  className?: string;
  children: ReactNode;
}

/** A button with a list below it. Arrow keys move, Escape and a click outside close it. */
export function Menu({ label, name, className = "btn", children }: MenuProps) {
  const [open, setOpen] = useState(false);
  const { box, onKeyDown } = usePopover<HTMLSpanElement>(open, () => setOpen(false));
  const id = useId();

  useEffect(() => {
    if (open) box.current?.querySelector<HTMLElement>("[role=menuitem],[role=menuitemcheckbox]")?.focus();
  }, [open, box]);

  const handleKeyDown = (event: KeyboardEvent) => {
    onKeyDown(event);
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const items = [...(box.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    if (items.length === 0) return;
    event.preventDefault();
    const at = items.indexOf(document.activeElement as HTMLElement);
    items[(at + (event.key === "ArrowDown" ? 1 : -1) + items.length) % items.length]?.focus();
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only passes keys to the buttons inside
    <span className="menu" ref={box} onKeyDown={handleKeyDown}>
      <button
        type="button"
        className={className}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={id}
        aria-label={name}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && (
        // biome-ignore lint/a11y/useKeyWithClickEvents: keys reach the items themselves
        <span className="menu-list" role="menu" id={id} tabIndex={-1} onClick={() => setOpen(false)}>
          {children}
        </span>
      )}
    </span>
  );
}
