import { i18n } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Preset } from "@/shared/api/providers";
import { hasEnded, type Run, runName, runQuery } from "@/shared/api/runs";
import { formatAgo, formatMs, formatUsd } from "@/shared/format/numbers";
import { runStatusLabel } from "@/shared/format/run-labels";
import { expectedSteps } from "@/shared/minimap/geometry";
import { MinimapThumbnail } from "@/shared/minimap/minimap-line";
import { Link } from "@/shared/routing/routing";
import { describeAnswerers, describeTechnically } from "@/shared/runs/answerers";
import { MarkedText } from "@/shared/runs/marked-text";
import { listRunActions, type RunActionHandlers } from "@/shared/runs/run-actions";
import { TitleField } from "@/shared/runs/title-field";
import { classNames } from "@/shared/ui/class-names";
import { useNow } from "@/shared/ui/hooks";
import { Menu } from "@/shared/ui/menu";
import { findPresetName } from "./preset-of-run";
import styles from "./runs.module.css";

const LOCATIONS = {
  title: msg`In the title`,
  question: msg`In the question`,
  tag: msg`In a tag`,
  report: msg`In the report`,
};

/** How long a row is shown before its steps are fetched, so that scrolling past it fetches nothing. */
const SETTLED_MS = 250;

interface RunRowProps extends RunActionHandlers {
  run: Run;
  /** Presets whose names stand for the engines that runs have. */
  presets: readonly Preset[];
  isSelected: boolean;
  /** Whether the keyboard is at this row. */
  isCurrent: boolean;
  isRenaming: boolean;
  onSelect(isRange: boolean): void;
  onRenamed(): void;
  onTag(tag: string): void;
  onFocus(): void;
  /** Called when the run is about to be opened. */
  onOpen(): void;
  isThreadOpen: boolean;
  /** Opens and closes the other runs of its thread. `null` means that it does not stand for a thread. */
  onThread: (() => void) | null;
}

export function RunRow(props: RunRowProps) {
  const { run, isSelected, isCurrent, isRenaming, organize, onSelect, onRenamed, onTag, onFocus, onOpen } = props;
  const { isThreadOpen, onThread, presets } = props;
  const now = useNow(30_000);
  const { label, tone } = runStatusLabel(run);
  const name = runName(run);
  const { match } = run;
  const nameMarks = (run.given_title ? match?.title_marks : match?.question_marks) ?? [];
  // The name and the tags are in the row with their words marked. An excerpt is shown from elsewhere.
  const isNamed = match && match.location === (run.given_title ? "title" : "question");
  const isElsewhere = match && !isNamed && match.location !== "tag";
  return (
    <div className={classNames(styles.row, isSelected && styles.selected, isCurrent && styles.current)}>
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={isSelected}
          aria-label={t`Select “${name}”`}
          onChange={(event) => onSelect(event.nativeEvent instanceof MouseEvent && event.nativeEvent.shiftKey)}
        />
      </label>
      <div className={styles.main}>
        {isRenaming ? (
          <TitleField run={run} onSave={(title) => organize.rename(run, title)} onClose={onRenamed} />
        ) : (
          <Link
            to="/runs/$runId"
            params={{ runId: run.id }}
            search={{}}
            dir="auto"
            className={styles.name}
            data-run={run.id}
            onFocus={onFocus}
            onClick={onOpen}
          >
            <MarkedText text={name} marks={nameMarks} />
          </Link>
        )}
        {match && isElsewhere && (
          <p className={styles.excerpt}>
            <span className="quiet">{i18n._(LOCATIONS[match.location])}: </span>
            <bdi>
              <MarkedText text={match.excerpt} marks={match.marks} />
            </bdi>
          </p>
        )}
        <div className={styles.facts}>
          {run.pinned_at && (
            <span className={styles.pinned}>
              <Trans>Pinned</Trans>
            </span>
          )}
          <time dateTime={run.created_at}>{formatAgo(run.created_at, now)}</time>
          <span title={describeTechnically(run)} dir="auto">
            {findPresetName(run, presets) ?? describeAnswerers(run.engines)}
          </span>
          <span>{plural(run.usage.turns, { one: "# turn", other: "# turns" })}</span>
          {run.usage.seconds > 0 && <span>{formatMs(run.usage.seconds * 1000)}</span>}
          {run.usage.cost_usd > 0 && <span>{formatUsd(run.usage.cost_usd)}</span>}
          {onThread && (
            <button type="button" className={styles.threadToggle} aria-expanded={isThreadOpen} onClick={onThread}>
              {plural(run.thread_runs - 1, { one: "# earlier question", other: "# earlier questions" })}
            </button>
          )}
          {run.tags.map((tag) => (
            <button
              key={tag}
              type="button"
              className={styles.tag}
              title={t`Show runs with the tag ${tag}`}
              onClick={() => onTag(tag)}
            >
              <bdi>
                <MarkedText text={tag} marks={match?.location === "tag" && match.excerpt === tag ? match.marks : []} />
              </bdi>
            </button>
          ))}
        </div>
      </div>
      <RowMinimap run={run} />
      <span className={`pill ${tone} ${styles.status}`}>
        <i />
        {label}
      </span>
      <Menu
        label="⋯"
        name={t`Actions for “${name}”`}
        className={`btn plain small ${styles.menu}`}
        items={listRunActions(run, props)}
      />
    </div>
  );
}

/** The steps of the run in small. They are fetched once the row has been in view for a moment. */
function RowMinimap({ run }: { run: Run }) {
  const isSettled = useIsSettled(SETTLED_MS);
  const detail = useQuery({
    ...runQuery(run.id),
    enabled: isSettled,
    staleTime: hasEnded(run) ? 600_000 : 4_000,
  });
  if (detail.error && !detail.data)
    return (
      <span className={`quiet ${styles.line}`}>
        <Trans>steps could not be loaded</Trans>
      </span>
    );
  const marks = detail.data?.step_marks;
  return (
    <span className={styles.line}>
      {marks !== undefined && (
        <MinimapThumbnail
          marks={marks}
          steps={expectedSteps(marks.length, run.budget.max_turns, hasEnded(run))}
          height={28}
        />
      )}
    </span>
  );
}

/** Return whether the component has been shown for `ms`. */
function useIsSettled(ms: number): boolean {
  const [isSettled, setSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), ms);
    return () => clearTimeout(timer);
  }, [ms]);
  return isSettled;
}
