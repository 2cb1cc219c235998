import { msg } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { RunFilters } from "@/features/runs/run-filters";
import type { RunListFilter } from "@/shared/api/runs";
import { useDebounced } from "@/shared/ui/hooks";
import { lazyView } from "@/shared/ui/lazy-view";
import "./runs-page.css";
import type { RunListSearch } from "./search-params";

export const RunListView = lazyView(msg`the runs`, async () => (await import("./run-list-view")).RunListView);

interface RunsPageProps {
  search: RunListSearch;
  /** `isStep` adds an entry to the browser's history; otherwise the entry is replaced. */
  onSearch(search: RunListSearch, isStep: boolean): void;
  /** Called with a question that the explanation for newcomers offers. */
  onExample(question: string): void;
}

/** All runs with what narrows and orders them. */
export function RunsPage({ search, onSearch, onExample }: RunsPageProps) {
  const { all: showsAll = false, q: text = "", ...others } = search;
  const q = useDebounced(text.trim(), 250);
  // The same object for the same filter, so that the list does not change with every key.
  const [filter, setFilter] = useState<RunListFilter>({});
  const next = { ...others, ...(q && { q }) };
  if (JSON.stringify(next) !== JSON.stringify(filter)) setFilter(next);
  return (
    <main className="runs-page">
      <h1>
        <Trans>Runs</Trans>
      </h1>
      <RunFilters
        filter={search}
        search={text}
        onSearch={(typed) => onSearch({ ...others, q: typed || undefined }, false)}
        onFilter={(part) => onSearch({ ...search, ...part }, true)}
        onClear={() => onSearch({}, true)}
      />
      <RunListView
        key={JSON.stringify(filter)}
        filter={filter}
        showsAll={showsAll}
        onShowAll={() => onSearch({ ...search, all: true }, true)}
        onAllPinned={() => onSearch({ ...search, pinned: true }, true)}
        onTag={(tag) => onSearch({ ...search, tag }, true)}
        onClear={() => onSearch({}, true)}
        onExample={onExample}
      />
    </main>
  );
}
