import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { MAX_MATCHES, type StepMatches, stepMatchesQuery } from "@/shared/api/run-views";
import { formatCount } from "@/shared/format/numbers";
import { type StepLog, stepAt } from "@/shared/stream/step-log";
import { useMediaQuery } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { toggled } from "@/shared/ui/toggled";
import { rowHeight } from "./row-height";
import { filterSeqs, type Rows, seqOfRow } from "./rows";
import { StepRow } from "./step-row";
import { StepSearch } from "./step-search";
import { useTail } from "./use-tail";
import "./timeline.css";

interface TimelineProps {
  runId: string;
  log: StepLog;
  marks: string;
  /** Step marks to show. Empty means all. */
  markFilter: string;
  /** Text that the shown steps contain. Empty means any. */
  search: string;
  /** Node of the graph that recorded the shown steps. Empty means any. */
  node: string;
  active: boolean;
  selected: number | null;
  /** The scrolling element: the column on a wide screen, the page on a phone. */
  scroller: HTMLElement | null;
  /** An active run opens at its last step. */
  startAtEnd: boolean;
  loadRange(from: number, to: number): void;
  onSelect(seq: number): void;
  onVisibleRange(range: readonly [number, number] | null): void;
  onSearch(text: string): void;
  /** Shows the steps of all marks and nodes. */
  onShowAll(): void;
}

const SEARCH_HEIGHT = 52;

export function Timeline(props: TimelineProps) {
  const {
    runId,
    log,
    marks,
    markFilter,
    search,
    node,
    active,
    selected,
    scroller,
    startAtEnd,
    loadRange,
    onSelect,
    onVisibleRange,
    onSearch,
    onShowAll,
  } = props;
  const isSearched = search !== "" || node !== "";
  const found = useQuery(stepMatchesQuery(runId, search, node, active));
  const matches = isSearched ? found.data?.matches : undefined;
  const excerpts = useMemo(() => new Map(matches?.map(({ seq, excerpt }) => [seq, excerpt])), [matches]);
  const isFiltered = markFilter !== "" || isSearched;
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const rows = useMemo<Rows>(
    () =>
      isFiltered ? { seqs: filterSeqs(marks, markFilter, isSearched ? (matches ?? []) : null) } : { count: log.last },
    [isFiltered, isSearched, markFilter, marks, matches, log.last],
  );
  const count = "count" in rows ? rows.count : rows.seqs.length;
  const list = useRef<HTMLOListElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (!scroller || !list.current) return;
    setMargin(list.current.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop);
  }, [scroller]);

  const isNarrow = useMediaQuery("(max-width: 900px)");
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller,
    estimateSize: (index) => {
      const seq = seqOfRow(rows, index);
      return rowHeight(stepAt(log, seq), stepAt(log, seq - 1)?.turn, isNarrow);
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
  const tail = useTail({ scroller, count, active, startAtEnd: startAtEnd && selected === null, scrollToEnd });

  // Scroll to a step that was selected elsewhere, and again when its page is loaded and the rows have their heights. A
  // visible step stays where it is.
  const isSelectedLoaded = selected !== null && stepAt(log, selected) !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new choice, or its arrival, scrolls
  useEffect(() => {
    if (selected === null || !scroller) return;
    loadRange(Math.max(1, selected - 40), selected + 40);
    const index = "count" in rows ? selected - 1 : rows.seqs.indexOf(selected);
    const isNear = items.some((item) => item.index === index) && isSelectedLoaded;
    if (index >= 0 && index < count) virtual.scrollToIndex(index, { align: isNear ? "auto" : "center" });
  }, [selected, isSelectedLoaded, scroller]);

  const selectRelative = (offset: number) => {
    const at = selected === null ? -1 : "count" in rows ? selected - 1 : rows.seqs.indexOf(selected);
    const next = Math.min(count - 1, Math.max(0, at + offset));
    if (count > 0) onSelect(seqOfRow(rows, next));
  };
  const toggle = useCallback((seq: number) => setOpen((was) => toggled(was, seq)), []);
  // The same function while the reader scrolls, so that rows which stay are not rendered again.
  const selectAndToggle = useCallback(
    (seq: number) => {
      onSelect(seq);
      toggle(seq);
    },
    [onSelect, toggle],
  );
  useHotkeys([
    { keys: "j", description: t`Next step`, run: () => selectRelative(1) },
    { keys: "k", description: t`Previous step`, run: () => selectRelative(-1) },
    { keys: "o", description: t`Open or close the step`, run: () => selected !== null && toggle(selected) },
    { keys: "G", description: t`Go to the last step`, run: scrollToEnd },
  ]);

  return (
    <div className="timeline">
      <StepSearch
        text={search}
        seqs={"seqs" in rows && isSearched ? rows.seqs : null}
        selected={selected}
        onSearch={onSearch}
        onSelect={onSelect}
      >
        {isFiltered && (
          <Shown
            count={count}
            total={log.last}
            matchCount={isSearched && found.data ? found.data.total : null}
            node={node}
          />
        )}
        {(markFilter || node) && (
          <button type="button" className="btn small" onClick={onShowAll}>
            <Trans>Show all</Trans>
          </button>
        )}
      </StepSearch>
      {isSearched && <SearchState query={found} count={count} />}
      {count === 0 && !isFiltered && (
        <p className="quiet timeline-empty">
          <Trans>The first step appears here shortly.</Trans>
        </p>
      )}
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
    </div>
  );
}

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

interface ShownProps {
  count: number;
  /** Number of steps of the run. */
  total: number;
  /** Number of steps that the search found. `null` means that nothing was searched for, or that it is not known yet. */
  matchCount: number | null;
  node: string;
}

/** How many steps are shown, of which node. */
function Shown({ count, total, matchCount, node }: ShownProps) {
  return (
    <span className="num">
      <Trans>
        <Plural value={count} one="# step" other="# steps" /> of {formatCount(total)} shown
      </Trans>
      {node && <> · {t`node ${node}`}</>}
      {matchCount !== null && matchCount > MAX_MATCHES && (
        <> · {t`the first ${formatCount(MAX_MATCHES)} of ${formatCount(matchCount)} matches`}</>
      )}
    </span>
  );
}

/** What a search waits for, its error, or that it found nothing. */
function SearchState({ query, count }: { query: Loadable<StepMatches>; count: number }) {
  return (
    <div className="timeline-found" role="status">
      <Loaded query={query} label={t`the matches`}>
        {() =>
          count === 0 ? (
            <p className="quiet">
              <Trans>No step contains this.</Trans>
            </p>
          ) : null
        }
      </Loaded>
    </div>
  );
}
