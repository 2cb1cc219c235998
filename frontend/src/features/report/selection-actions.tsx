import { t } from "@lingui/core/macro";
import { type RefObject, useEffect, useState } from "react";
import { Button } from "@/shared/ui/button";
import styles from "./ask.module.css";
import type { AskAbout } from "./report-view";

interface Selected {
  text: string;
  left: number;
  top: number;
}

const MIN_CHARS = 3;
const BAR_HEIGHT_PX = 40;
const BAR_WIDTH_PX = 230;

interface SelectionActionsProps {
  /** The element whose text can be selected. */
  area: RefObject<HTMLElement | null>;
  onAsk: AskAbout;
}

/**
 * Follow-ups on the selected text of a report, beside the selection. The menus of sentences and sections offer the same
 * to the keyboard.
 */
export function SelectionActions({ area, onAsk }: SelectionActionsProps) {
  const [selected, setSelected] = useState<Selected | null>(null);
  useEffect(() => {
    const read = () => setSelected(readSelection(area.current));
    const clear = () => setSelected(null);
    document.addEventListener("selectionchange", read);
    document.addEventListener("scroll", clear, { capture: true, passive: true });
    return () => {
      document.removeEventListener("selectionchange", read);
      document.removeEventListener("scroll", clear, { capture: true });
    };
  }, [area]);
  if (!selected) return null;
  const act = (kind: "question" | "research") => {
    onAsk(kind, selected.text);
    setSelected(null);
  };
  return (
    // The selection would be lost if the bar took the focus.
    <div
      className={styles.selection}
      role="toolbar"
      aria-label={t`Follow-ups on the selected text`}
      style={{ insetBlockStart: selected.top, left: selected.left }}
      onPointerDown={(event) => event.preventDefault()}
    >
      <Button small kind="plain" onClick={() => act("question")}>
        {t`Ask about this…`}
      </Button>
      <Button small kind="plain" onClick={() => act("research")}>
        {t`Dig deeper here…`}
      </Button>
    </div>
  );
}

/** Return the text that is selected in an element, and where the bar is shown. `null` means that there is none. */
function readSelection(area: HTMLElement | null): Selected | null {
  const selection = document.getSelection();
  if (!area || !selection || selection.isCollapsed || selection.rangeCount === 0) return null;
  const range = selection.getRangeAt(0);
  const text = selection.toString().replace(/\s+/g, " ").trim();
  if (text.length < MIN_CHARS || !area.contains(range.commonAncestorContainer)) return null;
  const box = range.getBoundingClientRect();
  const below = box.bottom + BAR_HEIGHT_PX < innerHeight - BAR_HEIGHT_PX;
  return {
    text,
    left: Math.max(8, Math.min(box.left, innerWidth - BAR_WIDTH_PX)),
    top: below ? box.bottom + 6 : Math.max(8, box.top - BAR_HEIGHT_PX),
  };
}
