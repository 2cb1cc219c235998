import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from "react";
import styles from "./tabs.module.css";

export interface TabItem<K extends string> {
  key: K;
  label: ReactNode;
}

interface TabsProps<K extends string> {
  /** Accessible name of the list of tabs. */
  label: string;
  tabs: readonly TabItem<K>[];
  selected: K;
  onSelect(key: NoInfer<K>): void;
  /** Beginning of the ids of tabs and panel, if something outside refers to them. */
  idPrefix?: string;
  /** Content at the end of the row of tabs. */
  end?: ReactNode;
  /** The panel of the selected tab. `undefined` means that the caller renders an element with `tabPanelProps`. */
  children?: ReactNode;
}

/** Return the attributes of the panel of a tab. */
export function tabPanelProps(idPrefix: string, key: string) {
  return { role: "tabpanel", id: `${idPrefix}panel-${key}`, "aria-labelledby": `${idPrefix}tab-${key}` } as const;
}

/** Width of the neighbor of the selected tab that stays in sight, which shows that there are more. */
const NEIGHBOR_PX = 24;

/**
 * Tabs of which one is selected. Arrow keys, Home and End select, in the reading direction. The first view of most pages
 * needs them, so they follow the ARIA pattern without a library.
 */
export function Tabs<K extends string>({ label, tabs, selected, onSelect, idPrefix, end, children }: TabsProps<K>) {
  const ownId = useId();
  const prefix = idPrefix ?? ownId;
  const list = useRef<HTMLDivElement>(null);
  const keys = tabs.map(({ key }) => key).join(" ");
  useEffect(() => {
    const row = list.current;
    if (!row) return;
    // Counts, fonts and what is at the end of the row arrive later and change widths.
    const tabOf = (key: string) => document.getElementById(`${prefix}tab-${key}`);
    const observer = new ResizeObserver(() => showTab(row, tabOf(selected)));
    for (const element of [row, ...keys.split(" ").map(tabOf)]) if (element) observer.observe(element);
    return () => observer.disconnect();
  }, [prefix, selected, keys]);
  const handleKeyDown = (event: KeyboardEvent) => {
    const isRtl = list.current !== null && getComputedStyle(list.current).direction === "rtl";
    const next = findNextTab(tabs, selected, event.key, isRtl);
    if (!next) return;
    event.preventDefault();
    onSelect(next.key);
    document.getElementById(`${prefix}tab-${next.key}`)?.focus();
  };
  return (
    <>
      <div className={styles.row}>
        <div ref={list} role="tablist" aria-label={label} className={styles.list} onKeyDown={handleKeyDown}>
          {tabs.map((tab) => (
            <button
              key={tab.key}
              id={`${prefix}tab-${tab.key}`}
              type="button"
              role="tab"
              aria-selected={tab.key === selected}
              aria-controls={tab.key === selected ? `${prefix}panel-${tab.key}` : undefined}
              tabIndex={tab.key === selected ? 0 : -1}
              className={styles.tab}
              onClick={() => onSelect(tab.key)}
            >
              {tab.label}
            </button>
          ))}
        </div>
        {end && <span className={styles.end}>{end}</span>}
      </div>
      {children !== undefined && <div {...tabPanelProps(prefix, selected)}>{children}</div>}
    </>
  );
}

/** Scroll a row that is too narrow for its tabs, so that a tab is in sight with a part of the one beside it. The page stays. */
function showTab(list: HTMLElement, tab: HTMLElement | null): void {
  if (!tab) return;
  const row = list.getBoundingClientRect();
  const shown = tab.getBoundingClientRect();
  const before = shown.left - NEIGHBOR_PX - row.left;
  const after = shown.right + NEIGHBOR_PX - row.right;
  // Physical distances are right in both reading directions.
  if (before < 0) list.scrollLeft += before;
  else if (after > 0) list.scrollLeft += after;
}

/** Return the tab that a key selects. `undefined` means that the key selects none. */
function findNextTab<K extends string>(
  tabs: readonly TabItem<K>[],
  selected: K,
  key: string,
  isRtl: boolean,
): TabItem<K> | undefined {
  if (key === "Home") return tabs[0];
  if (key === "End") return tabs.at(-1);
  const offset = { ArrowRight: isRtl ? -1 : 1, ArrowLeft: isRtl ? 1 : -1 }[key];
  if (!offset) return undefined;
  const at = tabs.findIndex((tab) => tab.key === selected);
  return tabs[(at + offset + tabs.length) % tabs.length];
}
