import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useLanguage } from "@/shared/language/language";
import { type StepLog, stepAt } from "@/shared/stream/step-log";
import { useDensity } from "@/shared/ui/density";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { rowHeight } from "./row-height";
import { type Rows, rowOfSeq, seqOfRow } from "./rows";
import { StepRow } from "./step-row";
import { useTail } from "./use-tail";

interface StepRowsProps {
  runId: string;
  log: StepLog;
  rows: Rows;
  /** Number of rows. */
  count: number;
  isFiltered: boolean;
  /** Text around the match of a search, by step. */
  excerpts: ReadonlyMap<number, string>;
  active: boolean;
  /** `null` means none. */
  selected: number | null;
  /** Steps that are open. */
  open: ReadonlySet<number>;
  /** The scrolling element. `null` before it is in the document. */
  scroller: HTMLElement | null;
  /** An active run opens at its last step. */
  startAtEnd: boolean;
  isNarrow: boolean;
  loadRange(from: number, to: number): void;
  onSelect(seq: number): void;
  /** Opens or closes a step. */
  onToggle(seq: number): void;
  onVisibleRange(range: readonly [number, number] | null): void;
}

const SEARCH_HEIGHT = 52;

/** The rows near the visible part of the timeline. Only this component is rendered in each frame of a scroll. */
export function StepRows(props: StepRowsProps) {
  const { runId, log, rows, count, isFiltered, excerpts, active, selected, open, scroller, isNarrow } = props;
  const { startAtEnd, loadRange, onSelect, onToggle, onVisibleRange } = props;
  const list = useRef<HTMLOListElement>(null);
  const density = useDensity();
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (!scroller || !list.current) return;
    setMargin(list.current.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop);
  }, [scroller]);

  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller,
    estimateSize: (index) => {
      const seq = seqOfRow(rows, index);
      return rowHeight(stepAt(log, seq), stepAt(log, seq - 1)?.turn, isNarrow, density);
    },
    measureElement: measureRow,
    getItemKey: (index) => seqOfRow(rows, index),
    overscan: 6,
    scrollMargin: margin,
    // A step that is scrolled to is not behind the search.
    scrollPaddingStart: SEARCH_HEIGHT,
    useFlushSync: false,
  });
  const items = virtual.getVirtualItems();
  const first = items[0] ? seqOfRow(rows, items[0].index) : 0;
  const last = items.length > 0 ? seqOfRow(rows, items.at(-1)?.index ?? 0) : 0;

  useEffect(() => {
    if (first > 0) loadRange(Math.max(1, first - 40), last + 40);
    onVisibleRange(first > 0 && !isFiltered ? [first, last] : null);
  }, [first, last, isFiltered, loadRange, onVisibleRange]);
  useEffect(() => () => onVisibleRange(null), [onVisibleRange]);

  const scrollToEnd = useCallback(() => virtual.scrollToIndex(count - 1, { align: "end" }), [virtual, count]);
  const tail = useTail({
    scroller,
    count,
    loaded: log,
    active,
    startAtEnd: startAtEnd && selected === null,
    scrollToEnd,
  });

  // Scroll to a step that was selected elsewhere, and again when its page is loaded and the rows have their heights. A
  // visible step stays where it is.
  const isSelectedLoaded = selected !== null && stepAt(log, selected) !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new choice, or its arrival, scrolls
  useEffect(() => {
    if (selected === null || !scroller) return;
    loadRange(Math.max(1, selected - 40), selected + 40);
    const index = rowOfSeq(rows, selected);
    const isNear = items.some((item) => item.index === index) && isSelectedLoaded;
    if (index >= 0 && index < count) virtual.scrollToIndex(index, { align: isNear ? "auto" : "center" });
  }, [selected, isSelectedLoaded, scroller]);

  // The same function while the reader scrolls, so that rows which stay are not rendered again.
  const selectAndToggle = useCallback(
    (seq: number) => {
      onSelect(seq);
      onToggle(seq);
    },
    [onSelect, onToggle],
  );

  return (
    <>
      <StepKeys
        rows={rows}
        count={count}
        selected={selected}
        onSelect={onSelect}
        onToggle={onToggle}
        scrollToEnd={scrollToEnd}
      />
      <ol ref={list} style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const seq = seqOfRow(rows, item.index);
          return (
            <li
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              style={{ top: item.start - margin }}
            >
              <StepRow
                runId={runId}
                seq={seq}
                step={stepAt(log, seq)}
                excerpt={excerpts.get(seq) ?? ""}
                previousTurn={stepAt(log, seq - 1)?.turn}
                selected={seq === selected}
                open={open.has(seq)}
                onToggle={selectAndToggle}
              />
            </li>
          );
        })}
      </ol>
      {tail.unseen > 0 && (
        <button type="button" className="timeline-new" onClick={tail.catchUp}>
          <Trans>{tail.unseen} new ↓</Trans>
        </button>
      )}
    </>
  );
}

interface StepKeysProps extends Pick<StepRowsProps, "rows" | "count" | "selected" | "onSelect" | "onToggle"> {
  scrollToEnd(): void;
}

/** The keys of the timeline. It shows nothing, and is not rendered while the reader scrolls. */
const StepKeys = memo(function StepKeys({ rows, count, selected, onSelect, onToggle, scrollToEnd }: StepKeysProps) {
  useLanguage();
  const selectRelative = (offset: number) => {
    const at = selected === null ? -1 : rowOfSeq(rows, selected);
    const next = Math.min(count - 1, Math.max(0, at + offset));
    if (count > 0) onSelect(seqOfRow(rows, next));
  };
  useHotkeys([
    { keys: "j", description: t`Next step`, run: () => selectRelative(1) },
    { keys: "k", description: t`Previous step`, run: () => selectRelative(-1) },
    { keys: "o", description: t`Open or close the step`, run: () => selected !== null && onToggle(selected) },
    { keys: "G", description: t`Go to the last step`, run: scrollToEnd },
  ]);
  return null;
});

/**
 * Return the height of a row. A row that has just been added has its expected height until the browser has laid it out
 * and reports it: to ask at once would lay out the page in the middle of each frame of a scroll.
 */
function measureRow(row: Element, entry: ResizeObserverEntry | undefined, virtual: Virtualizer<HTMLElement, Element>) {
  const box = entry?.borderBoxSize[0];
  if (box) return Math.round(box.blockSize);
  const index = virtual.indexFromElement(row);
  return virtual.itemSizeCache.get(virtual.options.getItemKey(index)) ?? virtual.options.estimateSize(index);
}
