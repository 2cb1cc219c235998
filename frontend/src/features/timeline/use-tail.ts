import { useEffect, useRef, useState } from "react";

/** Maximum distance from the end, in pixels, that counts as being at the end. */
const NEAR_END_PX = 48;

interface TailOptions {
  scroller: HTMLElement | null;
  count: number;
  active: boolean;
  /** Another value when rows have got their steps, and with them other heights. */
  loaded: unknown;
  /** Scroll to the end when the view opens. */
  startAtEnd: boolean;
  scrollToEnd(): void;
}

/** Follow the last row while the reader is at the end. Otherwise count the new rows. */
export function useTail({ scroller, count, loaded, active, startAtEnd, scrollToEnd }: TailOptions) {
  const [seenCount, setSeenCount] = useState(count);
  const isAtEnd = useRef(active && startAtEnd);
  const latestCount = useRef(count);

  useEffect(() => {
    if (!scroller) return;
    let lastTop = scroller.scrollTop;
    const updateAtEnd = () => {
      const isNear = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX;
      // Rows that grow when they are measured move the end away from a reader who stays. Only scrolling up leaves it.
      if (isNear || scroller.scrollTop < lastTop) isAtEnd.current = isNear;
      lastTop = scroller.scrollTop;
      if (isAtEnd.current) setSeenCount(latestCount.current);
    };
    scroller.addEventListener("scroll", updateAtEnd, { passive: true });
    return () => scroller.removeEventListener("scroll", updateAtEnd);
  }, [scroller]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: steps that were loaded move the end
  useEffect(() => {
    latestCount.current = count;
    if (!active) return setSeenCount(count);
    if (!isAtEnd.current) return;
    setSeenCount(count);
    scrollToEnd();
  }, [count, loaded, active, scrollToEnd]);

  const catchUp = () => {
    isAtEnd.current = true;
    setSeenCount(count);
    scrollToEnd();
  };
  return { unseen: active ? Math.max(0, count - seenCount) : 0, catchUp };
}
