import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Tenant, type TenantUpdate, tenantQuery, updateTenant } from "@/shared/api/installation";
import { signOut } from "@/shared/api/session";
import { formatUsd } from "@/shared/format/numbers";
import { LanguageField } from "@/shared/language/language-field";
import { Link } from "@/shared/routing/routing";
import { deleteAllDrafts } from "@/shared/ui/drafts";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { cancelUploads } from "@/shared/upload/upload";
import "./settings-form.css";

/** The language of the page, and the settings of the tenant. */
export function SettingsForm({ onClose }: { onClose(): void }) {
  const tenant = useQuery(tenantQuery);
  return (
    <>
      <div className="settings">
        <LanguageField />
      </div>
      <Loaded query={tenant} label={t`the settings`}>
        {(settings) => <LoadedSettings tenant={settings} onClose={onClose} />}
      </Loaded>
    </>
  );
}

function LoadedSettings({ tenant, onClose }: { tenant: Tenant; onClose(): void }) {
  const client = useQueryClient();
  const [limitText, setLimitText] = useState<string | null>(null);
  const update = useMutation({
    mutationFn: (body: TenantUpdate) => updateTenant(body),
    onSuccess: (now) => client.setQueryData(tenantQuery.queryKey, now),
  });
  const signingOut = useMutation({
    mutationFn: signOut,
    onSuccess: () => {
      cancelUploads();
      deleteAllDrafts();
      location.assign("/");
    },
  });
  const { training_opt_in, max_daily_spend_usd: daily_spend_usd, spent_today_usd, name } = tenant;
  const visibleLimit = limitText ?? (daily_spend_usd === null ? "" : String(daily_spend_usd));
  const amount = limitText === null || limitText.trim() === "" ? null : Number(limitText);
  const isValid = amount === null || amount >= 0;
  const saveLimit = () => {
    if (limitText !== null && isValid) update.mutate({ max_daily_spend_usd: amount });
  };
  return (
    <div className="settings">
      <label className="settings-check">
        <input
          type="checkbox"
          checked={training_opt_in}
          disabled={update.isPending}
          onChange={(event) => update.mutate({ training_opt_in: event.target.checked })}
        />
        <span>
          <Trans>Use my runs, ratings and corrections for training</Trans>
          <small>
            <Trans>They train the planner of this installation. No data leaves it.</Trans>
          </small>
        </span>
      </label>
      <label>
        <Trans>Daily spending limit, $</Trans>
        <input
          className="field num"
          inputMode="decimal"
          placeholder={t`no limit`}
          value={visibleLimit}
          onChange={(event) => setLimitText(event.target.value)}
          aria-invalid={!isValid}
          onBlur={saveLimit}
        />
        <small>
          <Trans>{formatUsd(spent_today_usd)} spent today.</Trans>
        </small>
        {!isValid && (
          <small className="settings-error" role="alert">
            <Trans>Not saved. Enter the limit as a number of dollars, such as 2.50, or leave it empty.</Trans>
          </small>
        )}
      </label>
      <ProblemNote error={update.error ?? signingOut.error} />
      <div className="actions">
        <span className="quiet settings-user">
          <Trans>Signed in as {name}</Trans>
        </span>
        <Link to="/settings" className="btn" onClick={onClose}>
          <Trans>All settings</Trans>
        </Link>
        <button type="button" className="btn" onClick={() => signingOut.mutate()}>
          <Trans>Sign out</Trans>
        </button>
        <button type="button" className="btn primary" onClick={onClose}>
          <Trans>Done</Trans>
        </button>
      </div>
    </div>
  );
}
