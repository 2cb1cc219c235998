import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { graphsQuery } from "@/shared/api/installation";
import { sourceName, sourceQuery } from "@/shared/api/library";
import { runCountsQuery } from "@/shared/api/run-changes";
import { orderOf, RUN_ORDERS, type RunListFilter, type RunOrder, tagsQuery } from "@/shared/api/runs";
import { Button, IconButton } from "@/shared/ui/button";
import { Input, Select } from "@/shared/ui/field";
import { combineQueries, Failure } from "@/shared/ui/loaded";
import styles from "./runs.module.css";

interface RunFiltersProps {
  filter: RunListFilter;
  /** Text of the search field, which is ahead of the filter while someone types. */
  search: string;
  onSearch(text: string): void;
  onFilter(part: Partial<RunListFilter>): void;
  /** Removes every filter and the search. */
  onClear(): void;
}

type View = NonNullable<RunListFilter["state"]> | "all" | "pinned" | "archived";

/** Return which of the views on the first line a filter is. */
function viewOf({ state, pinned, archived }: RunListFilter): View {
  if (archived) return "archived";
  return pinned ? "pinned" : (state ?? "all");
}

/** Return the part of a filter that a view is. A view replaces another one and keeps the remaining filters. */
function filterOf(view: View): Partial<RunListFilter> {
  const isState = view !== "all" && view !== "pinned" && view !== "archived";
  return {
    state: isState ? view : undefined,
    pinned: view === "pinned" || undefined,
    archived: view === "archived" || undefined,
  };
}

/** What the list shows: a search, views of which one is selected, and filters by graph, tag and date. */
export function RunFilters({ filter, search, onSearch, onFilter, onClear }: RunFiltersProps) {
  const [isOpen, setOpen] = useState(Boolean(filter.graph || filter.from || filter.until));
  const tags = useQuery(tagsQuery);
  const graphs = useQuery({ ...graphsQuery, enabled: isOpen });
  const view = viewOf(filter);
  const counts = useQuery(runCountsQuery);
  const views: { key: View; label: string; count?: number | undefined }[] = [
    { key: "all", label: t`All` },
    { key: "waiting", label: t`Waiting for you`, count: counts.data?.waiting_for_person },
    { key: "active", label: t`Not ended`, count: counts.data?.active },
    { key: "ended", label: t`Ended` },
    { key: "failed", label: t`Failed`, count: counts.data?.failed },
    { key: "pinned", label: t`Pinned`, count: counts.data?.pinned },
    { key: "archived", label: t`Archived`, count: counts.data?.archived },
  ];
  const tagNames = tags.data ? tags.data.items : [];
  const graphNames = graphs.data ? graphs.data.map(({ name }) => name) : [];
  const isNarrowed = Boolean(filter.tag || filter.graph || filter.cites || filter.from || filter.until);
  return (
    <search className={styles.filters}>
      <div className={styles.searchLine}>
        <Input
          dir="auto"
          id="run-search"
          type="search"
          aria-label={t`Search runs`}
          placeholder={t`Search questions, titles, tags, reports and documents`}
          maxLength={200}
          value={search}
          onChange={(event) => onSearch(event.target.value)}
        />
        <OrderField filter={filter} onOrder={(order) => onFilter({ order })} />
        <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Trans>Filters</Trans>
        </Button>
      </div>
      <fieldset className={styles.views}>
        <legend className="visually-hidden">
          <Trans>Runs to show</Trans>
        </legend>
        {views.map(({ key, label, count }) => (
          <button
            key={key}
            type="button"
            className={styles.view}
            aria-pressed={key === view}
            onClick={() => onFilter(filterOf(key))}
          >
            {label}
            {count ? " " : null}
            {count ? <Count value={count} /> : null}
          </button>
        ))}
      </fieldset>
      {isOpen && (
        <div className={styles.fields}>
          <OneOf
            label={t`Graph`}
            any={t`Any graph`}
            value={filter.graph}
            options={graphNames}
            onChange={(graph) => onFilter({ graph })}
          />
          <OneOf
            label={t`Tag`}
            any={t`Any tag`}
            value={filter.tag}
            options={tagNames}
            onChange={(tag) => onFilter({ tag })}
          />
          <Day label={t`From`} value={filter.from} max={filter.until} onChange={(from) => onFilter({ from })} />
          <Day label={t`Until`} value={filter.until} min={filter.from} onChange={(until) => onFilter({ until })} />
        </div>
      )}
      <Failure query={combineQueries({ tags, counts })} />
      {isOpen && <Failure query={graphs} />}
      {isNarrowed && (
        <div className={styles.applied}>
          {filter.tag && <Applied text={t`Tag: ${filter.tag}`} onRemove={() => onFilter({ tag: undefined })} />}
          {filter.graph && <Applied text={t`Graph: ${filter.graph}`} onRemove={() => onFilter({ graph: undefined })} />}
          {filter.cites && <Cites sourceId={filter.cites} onRemove={() => onFilter({ cites: undefined })} />}
          <Button kind="plain" small onClick={onClear}>
            <Trans>Show all runs</Trans>
          </Button>
        </div>
      )}
    </search>
  );
}

/** Runs beyond this number are not counted. */
const MAX_COUNT = 99;

function Count({ value }: { value: number }) {
  return (
    <span className={styles.count} title={value > MAX_COUNT ? t`More than ${MAX_COUNT}` : undefined}>
      {value > MAX_COUNT ? `${MAX_COUNT}+` : value}
    </span>
  );
}

interface OrderFieldProps {
  filter: RunListFilter;
  onOrder(order: RunOrder | undefined): void;
}

/** In which order the runs are listed: those that a search has, or those of other lists. */
function OrderField({ filter, onOrder }: OrderFieldProps) {
  const orders: Record<RunOrder, string> = {
    best: t`Best match first`,
    newest: t`Newest first`,
    oldest: t`Oldest first`,
    cost: t`Most expensive first`,
    duration: t`Longest first`,
  };
  const names = RUN_ORDERS.filter((name) => (filter.q ? name === "best" || name === "newest" : name !== "best"));
  const shown = orderOf(filter);
  return (
    <Select
      aria-label={t`Order`}
      className={styles.order}
      value={shown}
      onChange={(event) => onOrder(names.find((name) => name === event.target.value))}
    >
      {names.map((name) => (
        <option key={name} value={name}>
          {orders[name]}
        </option>
      ))}
    </Select>
  );
}

interface OneOfProps {
  label: string;
  /** The option that selects all. */
  any: string;
  value: string | undefined;
  options: readonly string[];
  onChange(value: string | undefined): void;
}

function OneOf({ label, any, value, options, onChange }: OneOfProps) {
  const listed = value && !options.includes(value) ? [value, ...options] : options;
  return (
    <Select aria-label={label} value={value ?? ""} onChange={(event) => onChange(event.target.value || undefined)}>
      <option value="">{any}</option>
      {listed.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </Select>
  );
}

interface DayProps {
  label: string;
  value: string | undefined;
  min?: string | undefined;
  max?: string | undefined;
  onChange(day: string | undefined): void;
}

function Day({ label, value, min, max, onChange }: DayProps) {
  const id = useId();
  return (
    <span className={styles.day}>
      <label htmlFor={id}>{label}</label>
      <Input
        id={id}
        type="date"
        value={value ?? ""}
        min={min}
        max={max}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    </span>
  );
}

/** The document that the listed runs cite. */
function Cites({ sourceId, onRemove }: { sourceId: string; onRemove(): void }) {
  const source = useQuery(sourceQuery(sourceId));
  const title = source.data ? sourceName(source.data) : t`a document`;
  return (
    <>
      <Applied text={t`Cites: ${title}`} onRemove={onRemove} />
      <Failure query={source} />
    </>
  );
}

function Applied({ text, onRemove }: { text: string; onRemove(): void }) {
  return (
    <span className={styles.chip}>
      <bdi>{text}</bdi>
      <IconButton small label={t`Remove the filter “${text}”`} onClick={onRemove}>
        ×
      </IconButton>
    </span>
  );
}
