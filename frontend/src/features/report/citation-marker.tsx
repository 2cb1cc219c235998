import { useEffect, useId, useRef, useState } from "react";
import { createPortal } from "react-dom";
import type { Citation } from "@/shared/api/reports";
import { type Place, placeCard } from "./place";
import { QuoteCard } from "./quote-card";
import "./citation-marker.css";

const SHOW_MS = 90;
const HIDE_MS = 180;
/** What a card usually measures; only decides between above and below. */
const CARD = { width: 440, height: 340 };

interface CitationMarkerProps {
  citation: Citation;
  pinned: boolean;
  onPin(number: number): void;
}

/** [n]: hover or focus shows the quote in its context, a click pins it beside the report. */
export function CitationMarker({ citation, pinned, onPin }: CitationMarkerProps) {
  const [place, setPlace] = useState<Place | null>(null);
  const marker = useRef<HTMLButtonElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const id = useId();

  const later = (ms: number, act: () => void) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(act, ms);
  };
  const show = () => {
    const anchor = marker.current?.getBoundingClientRect();
    if (anchor) setPlace(placeCard(anchor, CARD, { width: innerWidth, height: innerHeight }));
  };
  const hide = () => setPlace(null);

  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!place) return;
    const keys = (event: KeyboardEvent) => event.key === "Escape" && setPlace(null);
    const scrolled = () => setPlace(null);
    document.addEventListener("keydown", keys);
    document.addEventListener("scroll", scrolled, { capture: true, passive: true });
    return () => {
      document.removeEventListener("keydown", keys);
      document.removeEventListener("scroll", scrolled, { capture: true });
    };
  }, [place]);

  return (
    <>
      <button
        ref={marker}
        type="button"
        className={citation.verified ? "cite" : "cite bad"}
        aria-label={`Citation ${citation.number}: ${citation.title}`}
        aria-pressed={pinned}
        aria-describedby={place ? id : undefined}
        onPointerEnter={(event) => event.pointerType !== "touch" && later(SHOW_MS, show)}
        onPointerLeave={() => later(HIDE_MS, hide)}
        onFocus={(event) => event.currentTarget.matches(":focus-visible") && show()}
        onBlur={() => later(HIDE_MS, hide)}
        onClick={() => {
          clearTimeout(timer.current);
          hide();
          onPin(citation.number);
        }}
      >
        {citation.number}
      </button>
      {place &&
        createPortal(
          <div
            id={id}
            className="quote-float"
            role="tooltip"
            style={place}
            onPointerEnter={() => clearTimeout(timer.current)}
            onPointerLeave={() => later(HIDE_MS, hide)}
          >
            <QuoteCard citation={citation} />
          </div>,
          document.body,
        )}
    </>
  );
}
