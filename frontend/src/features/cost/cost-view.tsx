import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type UsageBreakdown, usageQuery } from "@/shared/api/run-views";
import type { RunDetail } from "@/shared/api/runs";
import { formatCompact, formatCount, formatMs, formatUsd } from "@/shared/format/numbers";
import { EmptyState } from "@/shared/ui/empty-state";
import { Loaded } from "@/shared/ui/loaded";
import { type Column, Table } from "@/shared/ui/table";
import styles from "./cost-view.module.css";
import { UsageChart } from "./usage-chart";

type RoleUsage = UsageBreakdown["roles"][number];
type UsagePoint = UsageBreakdown["points"][number];

/** Tokens and cost of the run: over its turns against its budget, and by role and model. */
export function CostView({ run, active }: { run: RunDetail; active: boolean }) {
  const usage = useQuery(usageQuery(run.id, active));
  return (
    <div className={styles.view}>
      <Loaded query={usage} label={t`the cost`} empty={({ roles }) => (roles.length === 0 ? <NoCalls /> : null)}>
        {(loaded) => (
          <>
            <Charts run={run} points={loaded.points} />
            <RoleTable roles={loaded.roles} />
            <Difference run={run} roles={loaded.roles} />
            <PointTable points={loaded.points} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function NoCalls() {
  return (
    <EmptyState title={t`No role was called yet`}>
      <Trans>Each call of a language model is listed here with its tokens and its cost.</Trans>
    </EmptyState>
  );
}

function Charts({ run, points }: { run: RunDetail; points: readonly UsagePoint[] }) {
  const [hovered, setHovered] = useState<number | null>(null);
  const turns = Math.max(1, ...points.map(({ turn }) => turn));
  // Turn 0, before the first turn, is the first step of the charts.
  const line = (valueAt: (point: UsagePoint) => number) =>
    points.map((point) => ({ step: point.turn + 1, value: valueAt(point) }));
  const shared = { turns, hovered, onHover: setHovered };
  return (
    <section className={styles.charts} aria-label={t`Over the turns`}>
      <UsageChart
        title={t`Tokens`}
        points={line(({ tokens }) => tokens)}
        limit={run.budget.max_tokens ?? null}
        format={formatCompact}
        {...shared}
      />
      <UsageChart
        title={t`Cost`}
        points={line(({ cost_usd: usd }) => usd)}
        limit={run.budget.max_cost_usd ?? null}
        format={formatUsd}
        {...shared}
      />
    </section>
  );
}

function RoleTable({ roles }: { roles: readonly RoleUsage[] }) {
  const columns: Column<RoleUsage>[] = [
    { header: t`Role`, cell: ({ role }) => role },
    { header: t`Model`, cell: ({ engine, model }) => <span className={styles.model}>{model || engine}</span> },
    {
      header: t`Calls`,
      isNumber: true,
      cell: ({ calls, rejected }) => (
        <>
          {formatCount(calls)}
          {rejected > 0 && <span className="quiet"> {t`${rejected} rejected`}</span>}
        </>
      ),
    },
    {
      header: t`Prompt tokens`,
      isNumber: true,
      cell: ({ prompt_tokens: tokens, cached_prompt_tokens: cached }) => (
        <>
          {formatCount(tokens)}
          {cached > 0 && <span className="quiet"> {t`${formatCompact(cached)} cached`}</span>}
        </>
      ),
    },
    { header: t`Answer tokens`, isNumber: true, cell: ({ completion_tokens: tokens }) => formatCount(tokens) },
    { header: t`Time`, isNumber: true, cell: ({ ms }) => formatMs(ms) },
    {
      header: t`Cost`,
      isNumber: true,
      cell: ({ cost_usd: usd, is_priced: isPriced }) => (isPriced ? formatUsd(usd) : t`unknown price`),
    },
  ];
  const rowKey = ({ role, engine, model }: RoleUsage) => `${role} ${engine} ${model}`;
  return <Table caption={t`Tokens and cost by role and model`} columns={columns} rows={roles} rowKey={rowKey} />;
}

/** What the run has used beside the calls of the table. Renders nothing if there is nothing. */
function Difference({ run, roles }: { run: RunDetail; roles: readonly RoleUsage[] }) {
  const tokens = run.usage.tokens - roles.reduce((sum, one) => sum + one.prompt_tokens + one.completion_tokens, 0);
  const usd = run.usage.cost_usd - roles.reduce((sum, one) => sum + one.cost_usd, 0);
  if (tokens <= 0 && usd < 0.000_001) return null;
  return (
    <p className="quiet">
      <Trans>
        In addition, child runs and calls without a usable answer used {formatCount(Math.max(0, tokens))} tokens and{" "}
        {formatUsd(Math.max(0, usd))}.
      </Trans>
    </p>
  );
}

/** The numbers of the charts. They are rendered when they are opened. */
function PointTable({ points }: { points: readonly UsagePoint[] }) {
  const [isOpen, setOpen] = useState(false);
  const columns: Column<UsagePoint>[] = [
    { header: t`Turn`, isNumber: true, cell: ({ turn }) => turn },
    { header: t`Tokens so far`, isNumber: true, cell: ({ tokens }) => formatCount(tokens) },
    { header: t`Cost so far`, isNumber: true, cell: ({ cost_usd: usd }) => formatUsd(usd) },
  ];
  return (
    <details className={styles.points} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Trans>The numbers of the charts</Trans>
      </summary>
      {isOpen && (
        <Table caption={t`Usage by turn`} columns={columns} rows={points} rowKey={({ turn }) => String(turn)} />
      )}
    </details>
  );
}
