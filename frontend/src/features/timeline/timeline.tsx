import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { counted } from "@/shared/format/numbers";
import { type Letter, seqsWith } from "@/shared/horizon/marks";
import { type StepLog, stepAt } from "@/shared/stream/step-log";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { type Rows, rowAt } from "./rows";
import { StepRow } from "./step-row";
import { useTail } from "./use-tail";
import "./timeline.css";

interface TimelineProps {
  run: string;
  log: StepLog;
  marks: string;
  /** Letters to show. Empty: all. */
  only: string;
  active: boolean;
  selected: number | null;
  /** The element that scrolls: the column on a desk, the page on a phone. */
  scroller: HTMLElement | null;
  /** An active run opens at its last step. */
  startAtEnd: boolean;
  need(from: number, to: number): void;
  onSelect(seq: number): void;
  onView(view: readonly [number, number] | null): void;
  onShowAll(): void;
}

const ROW_HEIGHT = 56;
const THIN_ROW_HEIGHT = 36;

export function Timeline(props: TimelineProps) {
  const { run, log, marks, only, active, selected, scroller, startAtEnd, need, onSelect, onView, onShowAll } = props;
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const rows = useMemo<Rows>(
    () => (only ? { seqs: seqsWith(marks, [...only] as Letter[]) } : { count: log.last }),
    [only, marks, log.last],
  );
  const count = "count" in rows ? rows.count : rows.seqs.length;
  const list = useRef<HTMLOListElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (!scroller || !list.current) return;
    setMargin(list.current.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop);
  }, [scroller]);

  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller,
    estimateSize: (index) => (stepAt(log, rowAt(rows, index))?.detail === "" ? THIN_ROW_HEIGHT : ROW_HEIGHT),
    getItemKey: (index) => rowAt(rows, index),
    overscan: 8,
    scrollMargin: margin,
    useFlushSync: false,
  });
  const items = virtual.getVirtualItems();
  const first = items[0] ? rowAt(rows, items[0].index) : 0;
  const last = items.length > 0 ? rowAt(rows, items.at(-1)?.index ?? 0) : 0;

  useEffect(() => {
    if (first > 0) need(Math.max(1, first - 40), last + 40);
    onView(first > 0 && !only ? [first, last] : null);
  }, [first, last, only, need, onView]);
  useEffect(() => () => onView(null), [onView]);

  const toEnd = useCallback(() => virtual.scrollToIndex(count - 1, { align: "end" }), [virtual, count]);
  const tail = useTail({ scroller, count, active, startAtEnd, toEnd });

  // Scrolls to the step that was picked elsewhere, and again when its page has come and the rows have their heights; a
  // step already in sight stays where it is.
  const selectedHeld = selected !== null && stepAt(log, selected) !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new choice, or its arrival, scrolls
  useEffect(() => {
    if (selected === null || !scroller) return;
    need(Math.max(1, selected - 40), selected + 40);
    const index = "count" in rows ? selected - 1 : rows.seqs.indexOf(selected);
    const near = items.some((item) => item.index === index) && selectedHeld;
    if (index >= 0 && index < count) virtual.scrollToIndex(index, { align: near ? "auto" : "center" });
  }, [selected, selectedHeld, scroller]);

  const move = (by: number) => {
    const at = selected === null ? -1 : "count" in rows ? selected - 1 : rows.seqs.indexOf(selected);
    const next = Math.min(count - 1, Math.max(0, at + by));
    if (count > 0) onSelect(rowAt(rows, next));
  };
  const toggle = (seq: number) => {
    const next = new Set(open);
    if (!next.delete(seq)) next.add(seq);
    setOpen(next);
  };
  useHotkeys([
    { keys: "j", does: "Next step", run: () => move(1) },
    { keys: "k", does: "Previous step", run: () => move(-1) },
    { keys: "o", does: "Open or close the step", run: () => selected !== null && toggle(selected) },
    { keys: "G", does: "To the last step", run: toEnd },
  ]);

  return (
    <div className="timeline">
      {only && (
        <p className="timeline-only">
          {counted(count, "step")} of {log.last} shown
          <button type="button" className="btn small" onClick={onShowAll}>
            Show all
          </button>
        </p>
      )}
      {count === 0 && <p className="quiet timeline-empty">The first step appears here in a moment.</p>}
      <ol ref={list} style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const seq = rowAt(rows, item.index);
          return (
            <li
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              style={{ transform: `translateY(${item.start - margin}px)` }}
            >
              <StepRow
                run={run}
                seq={seq}
                step={stepAt(log, seq)}
                before={stepAt(log, seq - 1)}
                selected={seq === selected}
                open={open.has(seq)}
                onToggle={() => {
                  onSelect(seq);
                  toggle(seq);
                }}
              />
            </li>
          );
        })}
      </ol>
      {tail.unseen > 0 && (
        <button type="button" className="timeline-new" onClick={tail.catchUp}>
          {tail.unseen} new ↓
        </button>
      )}
    </div>
  );
}
