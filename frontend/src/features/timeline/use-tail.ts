import { useEffect, useRef, useState } from "react";

/** So close to the end counts as at the end, in pixels. */
const NEAR = 48;

interface TailOptions {
  scroller: HTMLElement | null;
  count: number;
  active: boolean;
  /** At the start the reader is taken to the end. */
  startAtEnd: boolean;
  toEnd(): void;
}

/** Follows the last row only while the reader is at the end; else counts what came in. */
export function useTail({ scroller, count, active, startAtEnd, toEnd }: TailOptions) {
  const [seen, setSeen] = useState(count);
  const atEnd = useRef(active && startAtEnd);
  const known = useRef(count);

  useEffect(() => {
    if (!scroller) return;
    const look = () => {
      atEnd.current = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
      if (atEnd.current) setSeen(known.current);
    };
    scroller.addEventListener("scroll", look, { passive: true });
    return () => scroller.removeEventListener("scroll", look);
  }, [scroller]);

  useEffect(() => {
    known.current = count;
    if (!active) return setSeen(count);
    if (!atEnd.current) return;
    setSeen(count);
    toEnd();
  }, [count, active, toEnd]);

  const catchUp = () => {
    atEnd.current = true;
    setSeen(count);
    toEnd();
  };
  return { unseen: active ? Math.max(0, count - seen) : 0, catchUp };
}
