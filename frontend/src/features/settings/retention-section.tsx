import { i18n } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type StoredData, storedDataQuery } from "@/shared/api/settings";
import { formatBytes, formatCompact } from "@/shared/format/numbers";
import { Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { Table } from "@/shared/ui/table";
import styles from "./installation.module.css";

const KINDS = {
  runs: msg`Runs with their steps`,
  reports: msg`Reports and citations`,
  checkpoints: msg`Checkpoints of ended runs`,
  running_checkpoints: msg`Checkpoints of a running LangGraph graph`,
  role_calls: msg`Prompts and completions of models`,
  run_files: msg`Files that code of runs has written`,
  store_items: msg`Items that graphs store`,
  documents: msg`Documents and web pages`,
  search_index: msg`Search index`,
  training: msg`Rollouts and training`,
  other: msg`Other`,
};

function describeKind(kind: string): string {
  return kind in KINDS ? i18n._(KINDS[kind as keyof typeof KINDS]) : kind;
}

type Rule = StoredData["retention"][number];

/** How long a kind is kept, in words. The unit belongs to the kind. */
function describeRule({ kind, value }: Rule): string {
  if (kind === "checkpoints")
    return t`All for ${plural(value ?? 0, { one: "# day", other: "# days" })}, then the last one`;
  if (kind === "running_checkpoints")
    return value === null ? t`All of them` : plural(value, { one: "The latest one", other: "The latest #" });
  if (kind === "run_files" && value !== null) return plural(value, { one: "# day", other: "# days" });
  if (kind === "run_files") return t`As long as the run`;
  if (kind === "store_items") return t`At most ${formatCompact(value ?? 0)} per tenant`;
  return t`Until a person deletes them`;
}

/** What is kept for how long, how to change it, and how much space it takes. */
export function RetentionSection() {
  const stored = useQuery(storedDataQuery);
  return (
    <div className={styles.stack}>
      <p className={styles.intro}>
        <Trans>
          Runs, reports and documents are kept until you delete them. Workers remove only what runs no longer need.
        </Trans>
      </p>
      <Loaded query={stored} label={t`what is stored`}>
        {(data) => (
          <>
            <Rules rules={data.retention} />
            {data.database_bytes !== null && <Sizes total={data.database_bytes} kinds={data.kinds} />}
          </>
        )}
      </Loaded>
    </div>
  );
}

function Rules({ rules }: { rules: readonly Rule[] }) {
  return (
    <Panel title={t`How long data is kept`} level={3}>
      <Table
        caption={t`How long data is kept`}
        rows={rules}
        rowKey={({ kind }) => kind}
        columns={[
          { header: t`Data`, cell: ({ kind }) => describeKind(kind) },
          { header: t`Kept`, cell: describeRule },
          {
            header: t`Setting`,
            cell: ({ variable }) => (variable ? <span className={styles.code}>{variable}</span> : "–"),
          },
        ]}
      />
      <p className={styles.note}>
        <Trans>
          To change a setting, set its variable in the environment or in <code>.env</code>, and restart the workers.
        </Trans>
      </p>
    </Panel>
  );
}

function Sizes({ total, kinds }: { total: number; kinds: StoredData["kinds"] }) {
  return (
    <Panel title={t`Size of the database: ${formatBytes(total)}`} level={3}>
      <Table
        caption={t`Size by kind of data`}
        rows={kinds}
        rowKey={({ kind }) => kind}
        columns={[
          { header: t`Data`, cell: ({ kind }) => (kind === "checkpoints" ? t`Checkpoints` : describeKind(kind)) },
          { header: t`Size`, isNumber: true, cell: ({ size_bytes }) => formatBytes(size_bytes) },
          {
            header: t`Rows, about`,
            isNumber: true,
            cell: ({ row_estimate }) => (row_estimate > 0 ? formatCompact(row_estimate) : "–"),
          },
        ]}
      />
      <p className={styles.note}>
        <Trans>Sizes contain indexes. To free space, delete runs that you do not need, or shorten what is kept.</Trans>
      </p>
    </Panel>
  );
}
