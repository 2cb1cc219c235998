import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { tenantQuery, updateTenant } from "@/shared/api/installation";
import { SPENDING_DAYS, type Spending, spendingQuery } from "@/shared/api/settings";
import { formatCompact, formatDay, formatUsd } from "@/shared/format/numbers";
import { Button } from "@/shared/ui/button";
import { EmptyState } from "@/shared/ui/empty-state";
import { Field, Input } from "@/shared/ui/field";
import { Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import { Table } from "@/shared/ui/table";
import styles from "./installation.module.css";
import { sumByModel } from "./spending-sums";

/** The daily limit, and what was spent by day and by model. */
export function SpendingSection() {
  const spending = useQuery(spendingQuery);
  return (
    <div className={styles.stack}>
      <Loaded query={spending} label={t`the spending`}>
        {(data) => (
          <>
            <Limit spending={data} />
            <Days days={data.days} />
            <Models models={data.models} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function Limit({ spending }: { spending: Spending }) {
  const client = useQueryClient();
  const stored = spending.max_daily_spend_usd;
  const [text, setText] = useState<string | null>(null);
  const visible = text ?? (stored === null ? "" : String(stored));
  const amount = visible.trim() === "" ? null : Number(visible);
  const isValid = amount === null || (Number.isFinite(amount) && amount >= 0);
  const save = useMutation({
    mutationFn: () => updateTenant({ max_daily_spend_usd: amount }),
    onSuccess: async (tenant) => {
      client.setQueryData(tenantQuery.queryKey, tenant);
      await client.invalidateQueries({ queryKey: spendingQuery.queryKey });
      setText(null);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isValid) save.mutate();
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <Field
        label={t`Daily limit, $`}
        description={t`${formatUsd(spending.spent_today_usd)} spent today (UTC). When the limit is reached, runs end with what they have found.`}
        error={isValid ? "" : t`Enter a number of dollars, such as 2.50, or leave it empty for no limit.`}
      >
        {(control) => (
          <Input
            {...control}
            inputMode="decimal"
            placeholder={t`no limit`}
            value={visible}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <div className={styles.actions}>
        <Button type="submit" kind="primary" disabled={text === null || !isValid || save.isPending}>
          {save.isPending ? t`Saving…` : t`Save limit`}
        </Button>
      </div>
      <ProblemNote error={save.error} />
    </form>
  );
}

function Days({ days }: { days: Spending["days"] }) {
  const total = days.reduce((sum, { used_usd }) => sum + used_usd, 0);
  const largest = Math.max(...days.map(({ used_usd }) => used_usd), 0);
  const spent = days.filter(({ used_usd, reserved_usd }) => used_usd > 0 || reserved_usd > 0).reverse();
  return (
    <Panel title={t`Last ${SPENDING_DAYS} days: ${formatUsd(total)}`} level={3}>
      {largest === 0 ? (
        <EmptyState title={t`Nothing was spent`}>
          <Trans>Models on this machine, and the engine without a model, cost nothing.</Trans>
        </EmptyState>
      ) : (
        <>
          <div className={styles.bars} aria-hidden="true">
            {days.map(({ day, used_usd }) => (
              <div key={day} style={{ blockSize: `${(used_usd / largest) * 100}%` }} />
            ))}
          </div>
          <details>
            <summary>
              <Trans>By day</Trans>
            </summary>
            <Table
              caption={t`Spending by day`}
              rows={spent}
              rowKey={({ day }) => day}
              columns={[
                { header: t`Day`, cell: ({ day }) => formatDay(day) },
                { header: t`Spent`, isNumber: true, cell: ({ used_usd }) => formatUsd(used_usd) },
                {
                  header: t`Reserved`,
                  isNumber: true,
                  cell: ({ reserved_usd }) => (reserved_usd > 0 ? formatUsd(reserved_usd) : "–"),
                },
              ]}
            />
          </details>
        </>
      )}
    </Panel>
  );
}

function Models({ models }: { models: Spending["models"] }) {
  const sums = sumByModel(models);
  if (sums.length === 0) return null;
  return (
    <Panel title={t`By model`} level={3}>
      <Table
        caption={t`Spending by model`}
        rows={sums}
        rowKey={({ name }) => name}
        columns={[
          { header: t`Model`, cell: ({ name }) => <span className={styles.code}>{name}</span> },
          { header: t`Calls`, isNumber: true, cell: ({ calls }) => formatCompact(calls) },
          { header: t`Tokens read`, isNumber: true, cell: ({ promptTokens }) => formatCompact(promptTokens) },
          {
            header: t`Tokens written`,
            isNumber: true,
            cell: ({ completionTokens }) => formatCompact(completionTokens),
          },
          {
            header: t`Cost`,
            isNumber: true,
            cell: ({ cost, isPriced }) => (isPriced ? formatUsd(cost) : t`at least ${formatUsd(cost)}`),
          },
        ]}
      />
      <p className={styles.note}>
        <Trans>
          These are the recorded calls of runs that still exist. Tests of providers and deleted runs are only in the
          sums of days. “At least” means that the price of a call is unknown.
        </Trans>
      </p>
    </Panel>
  );
}
