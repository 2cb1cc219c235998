import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Preset } from "@/shared/api/providers";
import type { Run } from "@/shared/api/runs";
import type { Organize } from "@/shared/runs/use-organize";
import { Button } from "@/shared/ui/button";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { toggled } from "@/shared/ui/toggled";
import type { ListPosition } from "./list-position";
import { RunRow } from "./run-row";
import styles from "./runs.module.css";
import { ThreadRuns } from "./thread-runs";
import type { Selection } from "./use-selection";

const ROW_HEIGHT = 84;

/** Number of rows before the end at which the next page is fetched. */
const ROWS_AHEAD = 20;

interface RunListProps {
  runs: readonly Run[];
  presets: readonly Preset[];
  selection: Selection;
  organize: Organize;
  /** Number of runs at the start that are pinned. They have a heading, and so have the others. */
  pinnedCount: number;
  /** Leads to all pinned runs. `null` means that there are no more. */
  onAllPinned: (() => void) | null;
  /** Whether a run stands for its thread, so that its row opens the others. */
  hasThreads: boolean;
  /** How the list was left. `null` means that it is new. */
  restored: ListPosition | null;
  onPosition(position: ListPosition): void;
  /** Fetches the next page. `null` means that there is none, or that it is being fetched. */
  onMore: (() => void) | null;
  onTag(tag: string): void;
  onTags(runs: readonly Run[]): void;
  onDelete(runs: readonly Run[]): void;
  onCompare(run: Run): void;
}

/**
 * Runs as rows of which only those in view exist. Arrow keys move between them, Enter opens one, `x` selects it and `r`
 * renames it. `e`, `p`, `t` and Delete archive, pin, tag and delete the selected runs, or it if none is selected.
 */
export function RunList(props: RunListProps) {
  const { runs, selection, organize, onMore, onTag, onTags, onDelete, onCompare } = props;
  const { presets, pinnedCount, onAllPinned, hasThreads, restored, onPosition } = props;
  const [current, setCurrent] = useState<string | null>(restored?.current ?? null);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [renaming, setRenaming] = useState<string | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const [margin, setMargin] = useState(0);
  // Everything of the page that is above the list moves it, so its place is measured whenever it is rendered.
  useLayoutEffect(() => {
    const scroller = findScroller();
    if (!scroller || !list.current) return;
    const top = list.current.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
    setMargin(Math.round(top));
  });
  const virtual = useVirtualizer({
    count: runs.length,
    getScrollElement: findScroller,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => runs[index]?.id ?? index,
    overscan: 6,
    scrollMargin: margin,
    useFlushSync: false,
    ...(restored && { initialOffset: restored.top, initialMeasurementsCache: restored.measurements }),
  });
  useLayoutEffect(() => {
    const scroller = findScroller();
    if (!scroller) return;
    // A new list begins at its top, and one that was left is shown where it was.
    scroller.scrollTop = restored?.top ?? 0;
    const again = requestAnimationFrame(() => {
      if (restored) scroller.scrollTop = restored.top;
    });
    return () => cancelAnimationFrame(again);
  }, [restored]);
  const note = useRef<() => void>(() => undefined);
  useEffect(() => {
    note.current = () => {
      const top = findScroller()?.scrollTop ?? 0;
      onPosition({ top, measurements: virtual.measurementsCache, current });
    };
  });
  useEffect(() => {
    const scroller = findScroller();
    const handleScroll = () => note.current();
    scroller?.addEventListener("scroll", handleScroll, { passive: true });
    return () => scroller?.removeEventListener("scroll", handleScroll);
  }, []);
  const items = virtual.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (onMore && lastShown >= runs.length - ROWS_AHEAD) onMore();
  }, [lastShown, runs.length, onMore]);

  const at = runs.findIndex((run) => run.id === current);
  // A run that was archived or deleted leaves the list. The keyboard stays at its place.
  const lastAt = useRef(0);
  useEffect(() => {
    if (at >= 0) lastAt.current = at;
  }, [at]);
  const move = (offset: number) => {
    const to = at >= 0 ? at + offset : lastAt.current + Math.min(0, offset);
    const next = runs[Math.min(runs.length - 1, Math.max(0, to))];
    if (!next) return;
    setCurrent(next.id);
    virtual.scrollToIndex(runs.indexOf(next), { align: "auto" });
    focusRow(next.id);
  };
  const withCurrent = (action: (run: Run) => void) => () => {
    const run = runs[at];
    if (run) action(run);
  };
  /** Act on the selected runs, or on the current one if none is selected. */
  const withSelected = (action: (targets: readonly Run[]) => void) => () => {
    const selected = runs.filter((run) => selection.has(run.id));
    const targets = selected.length > 0 ? selected : runs.slice(at, at + 1);
    if (selected.length > 0 || at >= 0) action(targets);
  };
  useHotkeys([
    { keys: "ArrowDown", description: t`Next run`, run: () => move(1) },
    { keys: "ArrowUp", description: t`Previous run`, run: () => move(-1) },
    { keys: "x", description: t`Select the run`, run: withCurrent((run) => selection.toggle(run.id)) },
    {
      keys: "p",
      description: t`Pin or unpin the run`,
      run: withSelected((targets) => organize.pin(targets, !targets.every((run) => run.pinned_at))),
    },
    {
      keys: "e",
      description: t`Archive the run, or return it to the list`,
      run: withSelected((targets) => {
        organize.archive(targets, !targets.every((run) => run.archived_at));
        selection.clear();
      }),
    },
    { keys: "t", description: t`Tags…`, run: withSelected(onTags) },
    { keys: "r", description: t`Rename`, run: withCurrent((run) => setRenaming(run.id)) },
    { keys: "Delete", description: t`Delete…`, run: withSelected(onDelete) },
  ]);
  return (
    <ul ref={list} className={styles.list} style={{ height: virtual.getTotalSize() }} aria-label={t`Runs`}>
      {items.map((item) => {
        const run = runs[item.index];
        if (!run) return null;
        return (
          <li
            key={item.key}
            ref={virtual.measureElement}
            data-index={item.index}
            className={styles.item}
            style={{ transform: `translateY(${item.start - margin}px)` }}
          >
            {pinnedCount > 0 && item.index === 0 && <GroupName name={t`Pinned`} />}
            {pinnedCount > 0 && item.index === pinnedCount && <GroupName name={t`Other runs`} />}
            <RunRow
              run={run}
              presets={presets}
              organize={organize}
              isSelected={selection.has(run.id)}
              isCurrent={run.id === current}
              isRenaming={run.id === renaming}
              onSelect={(isRange) => (isRange ? selection.extend(run.id, runs) : selection.toggle(run.id))}
              onRename={() => setRenaming(run.id)}
              onRenamed={() => {
                setRenaming(null);
                focusRow(run.id);
              }}
              onTag={onTag}
              onTags={() => onTags([run])}
              onDelete={() => onDelete([run])}
              onCompare={() => onCompare(run)}
              onFocus={() => setCurrent(run.id)}
              onOpen={() => {
                setCurrent(run.id);
                onPosition({
                  top: findScroller()?.scrollTop ?? 0,
                  measurements: virtual.measurementsCache,
                  current: run.id,
                });
              }}
              isThreadOpen={opened.has(run.id)}
              onThread={hasThreads && run.thread_runs > 1 ? () => setOpened(toggled(opened, run.id)) : null}
            />
            {hasThreads && opened.has(run.id) && <ThreadRuns run={run} />}
            {item.index === pinnedCount - 1 && onAllPinned && (
              <Button small kind="plain" onClick={onAllPinned}>
                <Trans>Show all pinned runs</Trans>
              </Button>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function GroupName({ name }: { name: string }) {
  return <h2 className={styles.groupName}>{name}</h2>;
}

/** The element of the page that scrolls. */
function findScroller(): HTMLElement | null {
  return document.getElementById("view");
}

/** Focus the link of a row once it is rendered. */
function focusRow(runId: string): void {
  requestAnimationFrame(() =>
    document.querySelector<HTMLElement>(`[data-run="${CSS.escape(runId)}"]`)?.focus({ preventScroll: true }),
  );
}
