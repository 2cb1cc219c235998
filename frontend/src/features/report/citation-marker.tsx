import { t } from "@lingui/core/macro";
import { useEffect, useId, useRef, useState } from "react";
import { createPortal } from "react-dom";
import type { Citation } from "@/shared/api/reports";
import { type CardPosition, positionCard } from "./card-position";
import { QuoteCard } from "./quote-card";
import "@/shared/document/citation-number.css";

const SHOW_DELAY_MS = 90;
const HIDE_DELAY_MS = 180;
/** Typical size of a card. It only decides between above and below. */
const CARD_SIZE = { width: 440, height: 340 };

interface CitationMarkerProps {
  citation: Citation;
  pinned: boolean;
  onPin(number: number): void;
}

/** A citation marker [n]. Hover or focus shows the quote in its context; a click pins it beside the report. */
export function CitationMarker({ citation, pinned, onPin }: CitationMarkerProps) {
  const [position, setPosition] = useState<CardPosition | null>(null);
  const marker = useRef<HTMLButtonElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const id = useId();

  const schedule = (ms: number, act: () => void) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(act, ms);
  };
  const show = () => {
    const anchor = marker.current?.getBoundingClientRect();
    if (anchor) setPosition(positionCard(anchor, CARD_SIZE, { width: innerWidth, height: innerHeight }));
  };
  const hide = () => setPosition(null);

  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!position) return;
    const handleKeyDown = (event: KeyboardEvent) => event.key === "Escape" && setPosition(null);
    const handleScroll = () => setPosition(null);
    document.addEventListener("keydown", handleKeyDown);
    document.addEventListener("scroll", handleScroll, { capture: true, passive: true });
    return () => {
      document.removeEventListener("keydown", handleKeyDown);
      document.removeEventListener("scroll", handleScroll, { capture: true });
    };
  }, [position]);

  return (
    <>
      <button
        ref={marker}
        type="button"
        className={citation.verified ? "cite" : "cite unverified"}
        aria-label={t`Citation ${citation.number}: ${citation.title}`}
        aria-pressed={pinned}
        aria-describedby={position ? id : undefined}
        onPointerEnter={(event) => event.pointerType !== "touch" && schedule(SHOW_DELAY_MS, show)}
        onPointerLeave={() => schedule(HIDE_DELAY_MS, hide)}
        onFocus={(event) => event.currentTarget.matches(":focus-visible") && show()}
        onBlur={() => schedule(HIDE_DELAY_MS, hide)}
        onClick={() => {
          clearTimeout(timer.current);
          hide();
          onPin(citation.number);
        }}
      >
        {citation.number}
      </button>
      {position &&
        createPortal(
          <div
            id={id}
            className="quote-float"
            role="tooltip"
            style={position}
            onPointerEnter={() => clearTimeout(timer.current)}
            onPointerLeave={() => schedule(HIDE_DELAY_MS, hide)}
          >
            <QuoteCard citation={citation} />
          </div>,
          document.body,
        )}
    </>
  );
}
