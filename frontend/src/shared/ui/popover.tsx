import { type ReactNode, useRef, useState } from "react";
import { buttonClass } from "./button";
import { ProblemNote } from "./problem-note";
import { useOverlays } from "./use-overlays";

interface PopoverProps {
  /** Text of the button, and accessible name of the panel. */
  label: string;
  /** The content of the panel. `close` closes it. */
  children(close: () => void): ReactNode;
}

/** A button that opens a panel beside it. Escape and a click outside close it and return the focus to the button. */
export function Popover({ label, children }: PopoverProps) {
  const [isOpen, setOpen] = useState(false);
  const { overlays, error } = useOverlays(isOpen);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <button
        ref={button}
        type="button"
        className={buttonClass()}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && overlays && (
        <overlays.PopoverPanel trigger={button} label={label} onClose={close}>
          {children(close)}
        </overlays.PopoverPanel>
      )}
      {isOpen && <ProblemNote error={error} />}
    </>
  );
}
