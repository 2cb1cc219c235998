import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Tenant, type TenantUpdate, tenantQuery, updateTenant } from "@/shared/api/installation";
import { signOut } from "@/shared/api/session";
import { formatUsd } from "@/shared/format/numbers";
import { deleteAllDrafts } from "@/shared/ui/drafts";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { cancelUploads } from "@/shared/upload/upload";
import "./settings-form.css";

export function SettingsForm({ onClose }: { onClose(): void }) {
  const tenant = useQuery(tenantQuery);
  return (
    <Loaded query={tenant} label="the settings">
      {(settings) => <LoadedSettings tenant={settings} onClose={onClose} />}
    </Loaded>
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
          Use my runs, ratings and corrections for training
          <small>They train the planner of this installation. No data leaves it.</small>
        </span>
      </label>
      <label>
        Daily spending limit, $
        <input
          className="field num"
          inputMode="decimal"
          placeholder="no limit"
          value={visibleLimit}
          onChange={(event) => setLimitText(event.target.value)}
          aria-invalid={!isValid}
          onBlur={saveLimit}
        />
        <small>{formatUsd(spent_today_usd)} spent today.</small>
        {!isValid && (
          <small className="settings-error" role="alert">
            Not saved. Enter the limit as a number of dollars, such as 2.50, or leave it empty.
          </small>
        )}
      </label>
      <ProblemNote error={update.error ?? signingOut.error} />
      <div className="actions">
        <span className="quiet settings-user">Signed in as {name}</span>
        <button type="button" className="btn" onClick={() => signingOut.mutate()}>
          Sign out
        </button>
        <button type="button" className="btn primary" onClick={onClose}>
          Done
        </button>
      </div>
    </div>
  );
}
