import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { healthQuery, type InstallationHealth } from "@/shared/api/settings";
import { formatAgo, formatDuration } from "@/shared/format/numbers";
import { Badge } from "@/shared/ui/badge";
import { useNow } from "@/shared/ui/hooks";
import { Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { Table } from "@/shared/ui/table";
import { CodeText } from "./code-text";
import { type Check, checkText } from "./health-texts";
import styles from "./installation.module.css";

/** The state of the installation: each check, what to do if it fails, and the worker processes. */
export function HealthSection() {
  const health = useQuery(healthQuery);
  return (
    <Loaded query={health} label={t`the state of the installation`}>
      {(state) => (
        <div className={styles.stack}>
          <Summary health={state} />
          <Checks checks={state.checks} />
          {state.workers.length > 0 && <Workers workers={state.workers} />}
          <p className={styles.note}>
            <Trans>
              It is checked every 10 seconds. On the machine, <code>offing doctor</code> makes the same checks and more.
            </Trans>
          </p>
        </div>
      )}
    </Loaded>
  );
}

function Summary({ health }: { health: InstallationHealth }) {
  const failed = health.checks.filter(({ ok }) => !ok).length;
  return (
    <p role="status">
      {failed === 0 ? (
        <Badge tone="moss">
          <Trans>Everything works</Trans>
        </Badge>
      ) : (
        <Badge tone="coral">
          <Trans>Something needs attention</Trans>
        </Badge>
      )}
    </p>
  );
}

/** Failed checks come first. */
function Checks({ checks }: { checks: InstallationHealth["checks"] }) {
  const ordered = [...checks].sort((one, other) => Number(one.ok) - Number(other.ok));
  return (
    <ul className={styles.list}>
      {ordered.map((check) => (
        <CheckRow key={check.name} check={check} />
      ))}
    </ul>
  );
}

function CheckRow({ check }: { check: Check }) {
  const { name, detail, remedy } = checkText(check);
  return (
    <li className={styles.check}>
      <span className={styles.name}>{name}</span>
      <div>
        <span dir="auto">
          <CodeText>{detail}</CodeText>
        </span>
        {remedy && (
          <p className={styles.remedy} dir="auto">
            <CodeText>{remedy}</CodeText>
          </p>
        )}
      </div>
      <Badge tone={check.ok ? "moss" : "coral"}>{check.ok ? t`works` : t`fails`}</Badge>
    </li>
  );
}

function Workers({ workers }: { workers: InstallationHealth["workers"] }) {
  const now = useNow(10_000);
  return (
    <Panel title={t`Worker processes`} level={3}>
      <Table
        caption={t`Worker processes`}
        rows={workers}
        rowKey={({ name }) => name}
        columns={[
          { header: t`Process`, cell: ({ name }) => <span className={styles.code}>{name}</span> },
          { header: t`Version`, cell: ({ version }) => version },
          { header: t`Runs`, isNumber: true, cell: ({ runs, slots }) => t`${runs} of ${slots}` },
          { header: t`Started`, cell: ({ started_at }) => formatAgo(started_at, now) },
          {
            header: t`Last seen`,
            cell: ({ silent_seconds }) => t`${formatDuration(silent_seconds)} ago`,
          },
        ]}
      />
    </Panel>
  );
}
