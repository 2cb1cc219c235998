import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Citation, Report } from "@/shared/api/reports";
import { type RunSource, runSourcesQuery, type SourceState } from "@/shared/api/run-views";
import { listCitedMarks } from "@/shared/document/document-text";
import { OpenDocument } from "@/shared/document/open-document";
import { joinParts } from "@/shared/format/lists";
import { formatCount } from "@/shared/format/numbers";
import { findSeqs } from "@/shared/minimap/marks";
import { Link } from "@/shared/routing/routing";
import { positionText } from "@/shared/texts/position-texts";
import { Badge, type Tone } from "@/shared/ui/badge";
import { EmptyState } from "@/shared/ui/empty-state";
import { Failure, type Loadable, Loaded } from "@/shared/ui/loaded";
import { groupBySource } from "./cited-sources";
import "@/shared/document/citation-number.css";
import "./sources-view.css";

interface SourcesViewProps {
  runId: string;
  active: boolean;
  /** Whether a report was written. Until then, nothing is cited. */
  isReportWritten: boolean;
  report: Loadable<Report | null>;
  marks: string;
  pinned: readonly number[];
  onPick(seq: number): void;
  onPin(number: number): void;
}

/** Number of sources shown before the list is continued. */
const PAGE_SIZE = 100;

/** Every source that the run met, with its state. */
export function SourcesView({ runId, active, isReportWritten, report, marks, ...actions }: SourcesViewProps) {
  const sources = useQuery(runSourcesQuery(runId, active, findSeqs(marks, ["w"]).length));
  const citations = new Map(groupBySource(report.data ?? null).map((cited) => [cited.id, cited]));
  return (
    <div className="sources">
      {isReportWritten && <Failure query={report} />}
      <Loaded
        query={sources}
        label={t`the sources`}
        empty={({ total }) => (total === 0 ? <NoSources active={active} /> : null)}
      >
        {(list) => (
          <>
            {!list.is_complete && (
              <p className="quiet">
                <Trans>Only the sources of the latest 5,000 tool results are listed.</Trans>
              </p>
            )}
            <SourceList
              sources={list.items}
              total={list.total}
              citationsOf={(id) => citations.get(id)?.citations ?? []}
              labelOf={(id) => citations.get(id)?.label ?? ""}
              {...actions}
            />
          </>
        )}
      </Loaded>
    </div>
  );
}

function NoSources({ active }: { active: boolean }) {
  return (
    <EmptyState title={t`No sources yet`}>
      {active
        ? t`Documents and pages appear here as the run finds and reads them.`
        : t`The run found no document or page. Add documents to the library, or allow the web.`}
    </EmptyState>
  );
}

const STATES: readonly { state: SourceState; label: MessageDescriptor; tone: Tone }[] = [
  { state: "cited", label: msg`Cited`, tone: "moss" },
  { state: "read", label: msg`Read`, tone: "sea" },
  { state: "found", label: msg`Found`, tone: "neutral" },
  { state: "rejected", label: msg`Rejected`, tone: "sun" },
  { state: "blocked", label: msg`Blocked`, tone: "coral" },
  { state: "failed", label: msg`Not read`, tone: "coral" },
];

interface ListProps {
  sources: readonly RunSource[];
  /** Number of sources of the run, which can be more than are listed. */
  total: number;
  citationsOf(sourceId: string): readonly Citation[];
  /** Id of a source in the report, such as S1. Empty means that it is not cited. */
  labelOf(sourceId: string): string;
  pinned: readonly number[];
  onPick(seq: number): void;
  onPin(number: number): void;
}

function SourceList({ sources, total, ...actions }: ListProps) {
  const [filter, setFilter] = useState<SourceState | null>(null);
  const [count, setCount] = useState(PAGE_SIZE);
  const shown = STATES.flatMap(({ state }) => sources.filter((source) => source.state === state)).filter(
    ({ state }) => filter === null || state === filter,
  );
  return (
    <section aria-label={t`Sources`}>
      <fieldset className="source-filters">
        <legend className="visually-hidden">
          <Trans>Show only sources in this state</Trans>
        </legend>
        {STATES.map(({ state, label }) => {
          const number = sources.filter((source) => source.state === state).length;
          return (
            <button
              key={state}
              type="button"
              className="source-filter"
              aria-pressed={filter === state}
              disabled={number === 0}
              onClick={() => setFilter(filter === state ? null : state)}
            >
              {i18n._(label)} <span className="num">{formatCount(number)}</span>
            </button>
          );
        })}
      </fieldset>
      <ol>
        {shown.slice(0, count).map((source) => (
          <SourceItem key={source.key} source={source} {...actions} />
        ))}
      </ol>
      {count < shown.length && (
        <button type="button" className="btn" onClick={() => setCount(count + PAGE_SIZE)}>
          <Trans>Show {Math.min(PAGE_SIZE, shown.length - count)} more</Trans>
        </button>
      )}
      {total > sources.length && (
        <p className="quiet num">
          <Trans>
            The first {sources.length} of {total} sources are listed.
          </Trans>
        </p>
      )}
    </section>
  );
}

function SourceItem({
  source,
  citationsOf,
  labelOf,
  pinned,
  onPick,
  onPin,
}: Omit<ListProps, "sources" | "total"> & { source: RunSource }) {
  const state = STATES.find((one) => one.state === source.state);
  const label = source.source_id ? labelOf(source.source_id) : "";
  const title = source.title || source.name || source.key;
  const [firstSeq] = source.step_seqs;
  const citations = source.source_id ? citationsOf(source.source_id) : [];
  const cited = listCitedMarks(citations);
  const marks = cited.length > 0 ? cited : source.spans.map((span, at) => ({ ...span, label: String(at + 1) }));
  const facts = joinParts([
    plural(source.step_count, { one: "in # step", other: "in # steps" }),
    ...(source.span_count > 0 ? [plural(source.span_count, { one: "# passage", other: "# passages" })] : []),
  ]);
  return (
    <li className="cited">
      <div className="cited-head">
        <span dir="auto" className="cited-title">
          {label && `${label}. `}
          {marks[0] ? (
            <OpenDocument
              className="cited-open"
              title={title}
              textId={marks[0].text_id}
              marks={marks}
              marksLabel={cited.length > 0 ? t`Cited passages` : t`Passages that the run received`}
            >
              {title}
            </OpenDocument>
          ) : (
            title
          )}
        </span>
        {state && <Badge tone={state.tone}>{i18n._(state.label)}</Badge>}
      </div>
      {source.name && source.name !== title && (
        <p dir="auto" className="cited-description">
          {source.name}
        </p>
      )}
      {source.reason && (
        <p dir="auto" className="cited-description">
          {source.reason}
        </p>
      )}
      <p className="cited-actions num">
        <span>{facts}</span>
        {firstSeq !== undefined && (
          <button type="button" onClick={() => onPick(firstSeq)}>
            {t`step ${firstSeq}`}
          </button>
        )}
        {source.source_id && (
          <Link to="/library" search={{ source: source.source_id }}>
            <Trans>in the library</Trans>
          </Link>
        )}
      </p>
      <Citations citations={citations} pinned={pinned} onPin={onPin} />
    </li>
  );
}

interface CitationsProps {
  citations: readonly Citation[];
  pinned: readonly number[];
  onPin(number: number): void;
}

function Citations({ citations, pinned, onPin }: CitationsProps) {
  if (citations.length === 0) return null;
  return (
    <ul>
      {citations.map((citation) => (
        <li key={citation.number}>
          <button
            type="button"
            className="cited-citation"
            aria-pressed={pinned.includes(citation.number)}
            onClick={() => onPin(citation.number)}
          >
            <span className="cite static">{citation.number}</span>
            <span>
              <span dir="auto" className="cited-quote">
                {citation.quote}
              </span>
              {citation.position && <span className="cited-position">{positionText(citation)}</span>}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
