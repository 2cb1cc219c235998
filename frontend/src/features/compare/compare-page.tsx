import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { foundRunsQuery } from "@/shared/api/found-runs";
import { type Report, reportQuery } from "@/shared/api/reports";
import { type RunDetail, runName, runQuery } from "@/shared/api/runs";
import { formatDateTime } from "@/shared/format/numbers";
import { runStatusLabel } from "@/shared/format/run-labels";
import { Link } from "@/shared/routing/routing";
import { buttonClass } from "@/shared/ui/button";
import { classNames } from "@/shared/ui/class-names";
import { EmptyState } from "@/shared/ui/empty-state";
import { Checkbox, Field, Input } from "@/shared/ui/field";
import { useDebounced } from "@/shared/ui/hooks";
import { combineQueries, Loaded } from "@/shared/ui/loaded";
import { type AlignedRow, alignReports, type ReportLine, type TextPart } from "./align-reports";
import styles from "./compare.module.css";
import { type ComparedSource, compareFacts, compareSources, type FactGroup } from "./run-facts";

interface ComparePageProps {
  /** Ids of the runs. `null` means that the run is still to be chosen. */
  first: string | null;
  second: string | null;
}

/** Two runs side by side: settings, outcome, sources, and their reports sentence by sentence. */
export function ComparePage({ first, second }: ComparePageProps) {
  const chosen = first ?? second;
  return (
    <main className={styles.page}>
      <h1>
        <Trans>Compare runs</Trans>
      </h1>
      {first && second && <BothRuns firstId={first} secondId={second} />}
      {chosen && !(first && second) && <ChooseSecond firstId={chosen} />}
      {!chosen && (
        <EmptyState
          title={t`No run is chosen`}
          action={
            <Link to="/runs" search={{}} className={buttonClass()}>
              <Trans>Show the runs</Trans>
            </Link>
          }
        >
          <Trans>Select two runs in the list, then choose Compare.</Trans>
        </EmptyState>
      )}
    </main>
  );
}

/** Number of runs that are offered. */
const MAX_OFFERED = 12;

/** Offers runs to compare with the one that is chosen. */
function ChooseSecond({ firstId }: { firstId: string }) {
  const [text, setText] = useState("");
  const search = useDebounced(text.trim(), 250);
  const run = useQuery(runQuery(firstId));
  const offered = useQuery(foundRunsQuery(search, MAX_OFFERED));
  return (
    <>
      <Loaded query={run} label={t`the run`}>
        {(loaded) => <RunHead run={loaded} />}
      </Loaded>
      <Field label={t`Compare it with`}>
        {(control) => (
          <Input
            {...control}
            type="search"
            dir="auto"
            placeholder={t`Search questions, titles, tags and reports`}
            maxLength={200}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <Loaded query={offered} label={t`the runs`}>
        {(runs) => (
          <ul className={styles.offered}>
            {runs
              .filter((one) => one.id !== firstId)
              .map((one) => (
                <li key={one.id}>
                  <Link to="/runs/compare" search={{ a: firstId, b: one.id }} dir="auto">
                    {runName(one)}
                  </Link>
                  <span className="quiet"> {formatDateTime(one.created_at, "short")}</span>
                </li>
              ))}
          </ul>
        )}
      </Loaded>
    </>
  );
}

function BothRuns({ firstId, secondId }: { firstId: string; secondId: string }) {
  const first = useQuery(runQuery(firstId));
  const second = useQuery(runQuery(secondId));
  return (
    <Loaded query={combineQueries({ first, second })} label={t`the runs`}>
      {(runs) => <Reports first={runs.first} second={runs.second} />}
    </Loaded>
  );
}

interface Pair {
  first: RunDetail;
  second: RunDetail;
}

function Reports({ first, second }: Pair) {
  const isWritten = ({ step_marks: marks }: RunDetail) => marks.includes("w");
  const firstReport = useQuery(reportQuery(first.id, isWritten(first)));
  const secondReport = useQuery(reportQuery(second.id, isWritten(second)));
  const none = { data: null, error: null, fetchStatus: "idle" as const, refetch: () => undefined };
  const both = combineQueries({
    first: isWritten(first) ? firstReport : none,
    second: isWritten(second) ? secondReport : none,
  });
  return (
    <>
      <div className={styles.heads}>
        <Link to="/runs/compare" search={{ a: second.id, b: first.id }} className={buttonClass("standard", true)}>
          <Trans>Swap the sides</Trans>
        </Link>
        <RunHead run={first} />
        <RunHead run={second} />
      </div>
      <Loaded query={both} label={t`the reports`}>
        {(reports) => <Comparison first={first} second={second} reports={reports} />}
      </Loaded>
    </>
  );
}

function RunHead({ run }: { run: RunDetail }) {
  const { label, tone } = runStatusLabel(run);
  return (
    <section className={styles.head}>
      <Link to="/runs/$runId" params={{ runId: run.id }} search={{}} dir="auto" className={styles.name}>
        {runName(run)}
      </Link>
      <span className={styles.headFacts}>
        <span className={`pill ${tone}`}>
          <i />
          {label}
        </span>
        <time dateTime={run.created_at}>{formatDateTime(run.created_at, "short")}</time>
      </span>
    </section>
  );
}

interface ReportPair {
  first: Report | null;
  second: Report | null;
}

function Comparison({ first, second, reports }: Pair & { reports: ReportPair }) {
  const groups = compareFacts(first, second, reports.first, reports.second);
  return (
    <>
      {groups.map((group) => (
        <FactTable key={group.name} group={group} />
      ))}
      <Sources {...reports} />
      {reports.first && reports.second ? (
        <ReportDiff first={reports.first} second={reports.second} names={[runName(first), runName(second)]} />
      ) : (
        <p className="quiet">
          <Trans>The reports can be compared once both runs have one.</Trans>
        </p>
      )}
    </>
  );
}

function FactTable({ group }: { group: FactGroup }) {
  return (
    <table className={styles.facts}>
      <caption>{group.name}</caption>
      <colgroup>
        <col className={styles.property} />
        <col />
        <col />
      </colgroup>
      <thead className="visually-hidden">
        <tr>
          <th scope="col">{t`Property`}</th>
          <th scope="col">{t`First run`}</th>
          <th scope="col">{t`Second run`}</th>
        </tr>
      </thead>
      <tbody>
        {group.facts.map(({ name, first, second }) => (
          <tr key={name} className={classNames(first !== second && styles.differs)}>
            <th scope="row">
              {name}
              {first !== second && (
                <span className="visually-hidden">
                  <Trans>, differs</Trans>
                </span>
              )}
            </th>
            <td dir="auto" colSpan={first === second ? 2 : 1}>
              {first}
            </td>
            {first !== second && <td dir="auto">{second}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Sources({ first, second }: ReportPair) {
  const { both, first: onlyFirst, second: onlySecond } = compareSources(first, second);
  if (both.length + onlyFirst.length + onlySecond.length === 0) return null;
  return (
    <section className={styles.section}>
      <h2>
        <Trans>Cited sources</Trans>
      </h2>
      <div className={styles.sources}>
        <SourceList name={t`Only in the first report`} sources={onlyFirst} />
        <SourceList name={t`In both reports`} sources={both} />
        <SourceList name={t`Only in the second report`} sources={onlySecond} />
      </div>
    </section>
  );
}

/** Number of sources of a list that are shown at first. */
const MAX_SOURCES = 12;

function SourceList({ name, sources }: { name: string; sources: readonly ComparedSource[] }) {
  const [showsAll, setShowsAll] = useState(false);
  const shown = showsAll ? sources : sources.slice(0, MAX_SOURCES);
  return (
    <section>
      <h3>
        {name} <span className="num quiet">{sources.length}</span>
      </h3>
      <ul>
        {shown.map(({ id, title }) => (
          <li key={id} dir="auto">
            <Link to="/library" search={{ source: id }}>
              {title}
            </Link>
          </li>
        ))}
      </ul>
      {shown.length < sources.length && (
        <button type="button" className="btn small" onClick={() => setShowsAll(true)}>
          <Trans>Show {sources.length - shown.length} more</Trans>
        </button>
      )}
    </section>
  );
}

interface ReportDiffProps {
  first: Report;
  second: Report;
  /** Names of the two runs, which stand over the columns. */
  names: readonly [string, string];
}

function ReportDiff({ first, second, names }: ReportDiffProps) {
  const [hidesSame, setHidesSame] = useState(false);
  const rows = useMemo(() => alignReports(first, second), [first, second]);
  const sameCount = rows.filter(({ kind }) => kind === "same").length;
  const shown = hidesSame ? rows.filter(({ kind }) => kind !== "same") : rows;
  return (
    <section className={styles.section}>
      <h2>
        <Trans>Reports</Trans>
      </h2>
      <p className="quiet">
        {sameCount === rows.length
          ? t`The reports have the same sentences.`
          : plural(sameCount, {
              one: "# line is the same. Words that only one report has are marked.",
              other: "# lines are the same. Words that only one report has are marked.",
            })}
      </p>
      {sameCount > 0 && sameCount < rows.length && (
        <Checkbox label={t`Show only the differences`} checked={hidesSame} onChange={setHidesSame} />
      )}
      <div className={styles.diff}>
        <div className={styles.pair}>
          <p dir="auto" className={classNames(styles.column, styles.first)}>
            {names[0]}
          </p>
          <p dir="auto" className={classNames(styles.column, styles.second)}>
            {names[1]}
          </p>
        </div>
        {shown.map((row, nth) => (
          // Rows of one comparison never change their order.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <DiffRow key={nth} row={row} />
        ))}
      </div>
    </section>
  );
}

function DiffRow({ row }: { row: AlignedRow }) {
  const { kind, first, second, firstParts, secondParts } = row;
  return (
    <div className={classNames(styles.pair, kind === "same" && styles.same)}>
      <Line
        line={first}
        parts={firstParts}
        label={kind === "first" ? t`Only in the first report` : null}
        side="first"
      />
      <Line
        line={second}
        parts={secondParts}
        label={kind === "second" ? t`Only in the second report` : null}
        side="second"
      />
    </div>
  );
}

interface LineProps {
  /** `null` if this report has no line here. */
  line: ReportLine | null;
  parts: readonly TextPart[];
  /** What is said of a line that only one report has. */
  label: string | null;
  side: "first" | "second";
}

function Line({ line, parts, label, side }: LineProps) {
  if (!line) return <div className={styles.absent} />;
  const Element = side === "first" ? "del" : "ins";
  const text =
    parts.length > 0
      ? // Parts of one diff never change their order.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        parts.map((part, nth) => (part.isOwn ? <Element key={nth}>{part.text}</Element> : part.text))
      : line.text;
  return (
    <div
      className={classNames(styles.cell, styles[side], !line.sentence && styles.heading, label !== null && styles.own)}
    >
      {label && <span className="visually-hidden">{label}: </span>}
      <span dir="auto">{text}</span>
      {line.sentence && line.sentence.citations.length > 0 && (
        <span className={`num ${styles.cites}`}>
          {" "}
          {line.sentence.citations.map((number) => `[${number}]`).join("")}
        </span>
      )}
      {line.sentence && !line.sentence.supported && line.sentence.layout !== "header" && (
        <span className={styles.unsupported}>
          {" "}
          <Trans>unsupported</Trans>
        </span>
      )}
    </div>
  );
}
