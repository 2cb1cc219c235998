import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import "./controls.css";

interface MenuProps {
  label: ReactNode;
  /** Name for a label that is only an icon. */
  name?: string;
  className?: string;
  children: ReactNode;
}

/** A button with a list under it. Arrow keys move, Escape and a click elsewhere close. */
export function Menu({ label, name, className = "btn", children }: MenuProps) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();

  useEffect(() => {
    if (!open) return;
    const away = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    box.current?.querySelector<HTMLElement>("[role=menuitem],[role=menuitemcheckbox]")?.focus();
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);

  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape" && open) {
      event.stopPropagation();
      setOpen(false);
      box.current?.querySelector("button")?.focus();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const items = [...(box.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    if (items.length === 0) return;
    event.preventDefault();
    const at = items.indexOf(document.activeElement as HTMLElement);
    items[(at + (event.key === "ArrowDown" ? 1 : -1) + items.length) % items.length]?.focus();
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only hands keys to the buttons inside
    <div className="menu" ref={box} onKeyDown={keys}>
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
        <div className="menu-list" role="menu" id={id} tabIndex={-1} onClick={() => setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}
