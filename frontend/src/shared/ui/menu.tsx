import { type ReactNode, useRef, useState } from "react";
import { ProblemNote } from "./problem-note";
import { useOverlays } from "./use-overlays";

export interface MenuAction {
  name: string;
  description?: string;
  /** The action opens this address. */
  href?: string;
  /** The browser saves the address as a file. */
  isDownload?: boolean;
  onAction?(): void;
}

interface MenuProps {
  label: ReactNode;
  /** Accessible name, if the label is only an icon. */
  name?: string;
  /** Class of the button. */
  className?: string;
  items: readonly MenuAction[];
}

/** A button that opens a list of actions. Arrow keys move, letters jump, Escape and a click outside close it. */
export function Menu({ label, name, className = "btn", items }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const { overlays, error } = useOverlays(isOpen);
  const button = useRef<HTMLButtonElement>(null);
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={name}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && overlays && (
        <overlays.MenuList
          trigger={button}
          label={name ?? (typeof label === "string" ? label : "")}
          items={items}
          onClose={() => setOpen(false)}
        />
      )}
      {isOpen && <ProblemNote error={error} />}
    </>
  );
}
