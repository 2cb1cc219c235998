import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { changeTenant, type Tenant, type TenantChange, tenantQuery } from "@/shared/api/catalog";
import { signOut } from "@/shared/api/session";
import { money } from "@/shared/format/numbers";
import { Dialog } from "@/shared/ui/dialog";
import { forgetAllDrafts } from "@/shared/ui/drafts";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { forgetUploads } from "@/shared/upload/upload";
import "./settings-menu.css";

/** What holds for the whole tenant: training opt-in and the day's spending cap. */
export function SettingsMenu() {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="btn plain" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        Settings
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title="Settings">
        <SettingsForm onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

function SettingsForm({ onClose }: { onClose(): void }) {
  const tenant = useQuery(tenantQuery);
  return (
    <Loaded query={tenant} what="the settings">
      {(settings) => <LoadedSettings tenant={settings} onClose={onClose} />}
    </Loaded>
  );
}

function LoadedSettings({ tenant, onClose }: { tenant: Tenant; onClose(): void }) {
  const client = useQueryClient();
  const [cap, setCap] = useState<string | null>(null);
  const change = useMutation({
    mutationFn: (body: TenantChange) => changeTenant(body),
    onSuccess: (now) => client.setQueryData(tenantQuery.queryKey, now),
  });
  const leave = useMutation({
    mutationFn: signOut,
    onSuccess: () => {
      forgetUploads();
      forgetAllDrafts();
      location.assign("/");
    },
  });
  const { training_opt_in, daily_spend_usd, spent_today_usd, name } = tenant;
  const shownCap = cap ?? (daily_spend_usd === null ? "" : String(daily_spend_usd));
  const amount = cap === null || cap.trim() === "" ? null : Number(cap);
  const usable = amount === null || amount >= 0;
  const saveCap = () => {
    if (cap !== null && usable) change.mutate({ daily_spend_usd: amount });
  };
  return (
    <div className="settings">
      <label className="settings-check">
        <input
          type="checkbox"
          checked={training_opt_in}
          disabled={change.isPending}
          onChange={(event) => change.mutate({ training_opt_in: event.target.checked })}
        />
        <span>
          Learn from my runs, ratings and corrections
          <small>They train this installation's own planner. Nothing leaves it.</small>
        </span>
      </label>
      <label>
        Spend at most a day, $
        <input
          className="field num"
          inputMode="decimal"
          placeholder="no cap"
          value={shownCap}
          onChange={(event) => setCap(event.target.value)}
          aria-invalid={!usable}
          onBlur={saveCap}
        />
        <small>{money(spent_today_usd)} spent today.</small>
        {!usable && (
          <small className="settings-wrong" role="alert">
            Not saved. Give the cap as a number of dollars, such as 2.50, or leave it empty.
          </small>
        )}
      </label>
      <ProblemNote error={change.error ?? leave.error} />
      <div className="actions">
        <span className="quiet settings-who">Signed in as {name}</span>
        <button type="button" className="btn" onClick={() => leave.mutate()}>
          Sign out
        </button>
        <button type="button" className="btn primary" onClick={onClose}>
          Done
        </button>
      </div>
    </div>
  );
}
