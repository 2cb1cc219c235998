import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { MAX_MATCHES, type StepMatches, stepMatchesQuery } from "@/shared/api/run-views";
import { formatCount } from "@/shared/format/numbers";
import type { StepLog } from "@/shared/stream/step-log";
import { useMediaQuery } from "@/shared/ui/hooks";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { toggled } from "@/shared/ui/toggled";
import { filterSeqs, type Rows } from "./rows";
import { StepRows } from "./step-rows";
import { StepSearch } from "./step-search";
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
  const isNarrow = useMediaQuery("(max-width: 900px)");
  const toggle = useCallback((seq: number) => setOpen((was) => toggled(was, seq)), []);

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
      <StepRows
        runId={runId}
        log={log}
        rows={rows}
        count={count}
        isFiltered={isFiltered}
        excerpts={excerpts}
        active={active}
        selected={selected}
        open={open}
        scroller={scroller}
        startAtEnd={startAtEnd}
        isNarrow={isNarrow}
        loadRange={loadRange}
        onSelect={onSelect}
        onToggle={toggle}
        onVisibleRange={onVisibleRange}
      />
    </div>
  );
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
