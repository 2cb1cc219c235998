import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Report, type ReportVersion, restoreReport, versionsQuery } from "@/shared/api/reports";
import { formatDateTime } from "@/shared/format/numbers";
import { Link } from "@/shared/routing/routing";
import { Button } from "@/shared/ui/button";
import { Select } from "@/shared/ui/field";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import { describeAuthor } from "./people";
import { VersionChanges } from "./version-changes";
import styles from "./versions.module.css";

interface VersionsPanelProps {
  /** The version that is shown. */
  report: Report;
  /** Whether the run has ended, so that versions can be restored. */
  canRestore: boolean;
  /** Shows a version. `undefined` means the latest. */
  onShow(version: number | undefined): void;
}

/** All versions of a report: who saved them and why, what changed, and a way back to each. */
export function VersionsPanel({ report, canRestore, onShow }: VersionsPanelProps) {
  const versions = useInfiniteQuery(versionsQuery(report.run_id));
  const latest = report.latest_version;
  const [compared, setCompared] = useState<readonly [number, number]>([Math.max(1, latest - 1), latest]);
  const restore = useRestore(report, () => onShow(undefined));
  return (
    <div className={styles.view}>
      <Panel title={t`Versions`}>
        <Loaded query={versions} label={t`the versions`}>
          {({ pages }) => (
            <ol className={styles.list}>
              {pages
                .flatMap(({ items }) => items)
                .map((one) => (
                  <li key={one.version} className={styles.version} aria-current={one.version === report.version}>
                    <VersionLine version={one} />
                    <span className={styles.actions}>
                      <Button small onClick={() => onShow(one.version === latest ? undefined : one.version)}>
                        <Trans>Show</Trans>
                      </Button>
                      {one.version > 1 && (
                        <Button small onClick={() => setCompared([one.base_version ?? one.version - 1, one.version])}>
                          <Trans>What changed</Trans>
                        </Button>
                      )}
                      {one.version !== latest && canRestore && (
                        <Button small disabled={restore.isPending} onClick={() => restore.mutate(one.version)}>
                          <Trans>Restore</Trans>
                        </Button>
                      )}
                    </span>
                  </li>
                ))}
            </ol>
          )}
        </Loaded>
        <LoadMore query={versions} text={t`Earlier versions`} />
        <ProblemNote error={restore.error} />
      </Panel>
      {latest > 1 && (
        <Panel title={t`Compare`}>
          <p className={styles.compare}>
            <VersionSelect
              label={t`Old version`}
              value={compared[0]}
              count={latest}
              onChange={(old) => setCompared([old, compared[1]])}
            />
            <span aria-hidden="true">→</span>
            <VersionSelect
              label={t`New version`}
              value={compared[1]}
              count={latest}
              onChange={(next) => setCompared([compared[0], next])}
            />
          </p>
          <VersionChanges runId={report.run_id} old={compared[0]} next={compared[1]} />
        </Panel>
      )}
    </div>
  );
}

function useRestore(report: Report, onRestored: () => void) {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: (version: number) => restoreReport(report.run_id, version, report.latest_version),
    onSuccess: async (restored, version) => {
      await client.invalidateQueries({ queryKey: ["report", report.run_id] });
      toast({ text: t`Version ${version} is restored as version ${restored.version}.` });
      onRestored();
    },
  });
}

function VersionLine({ version }: { version: ReportVersion }) {
  const at = formatDateTime(version.created_at, "short");
  return (
    <div>
      <b>
        <Trans>Version {version.version}</Trans>
      </b>{" "}
      <span className="quiet">
        {describeAuthor(version)}
        {version.base_version !== null && t`, from version ${version.base_version}`}
        {" · "}
        {at}
      </span>
      {version.note && (
        <p dir="auto" className={styles.note}>
          {version.note}
        </p>
      )}
      {version.follow_up_run_id !== null && (
        <p className={styles.note}>
          <Link to="/runs/$runId" params={{ runId: version.follow_up_run_id }}>
            <Trans>Open the follow-up</Trans>
          </Link>
        </p>
      )}
    </div>
  );
}

interface VersionSelectProps {
  label: string;
  value: number;
  count: number;
  onChange(version: number): void;
}

function VersionSelect({ label, value, count, onChange }: VersionSelectProps) {
  return (
    <Select
      aria-label={label}
      className={styles.select}
      value={value}
      onChange={(event) => onChange(Number(event.target.value))}
    >
      {Array.from({ length: count }, (_, at) => at + 1).map((version) => (
        <option key={version} value={version}>
          <Trans>Version {version}</Trans>
        </option>
      ))}
    </Select>
  );
}
