import { type ReactNode, useState } from "react";
import { Dialog } from "@/shared/ui/dialog";
import { lazyView } from "@/shared/ui/lazy-view";

const SettingsForm = lazyView("the form", async () => (await import("./settings-form")).SettingsForm);

/** Settings of the tenant: training opt-in and the daily spending limit. */
export function SettingsMenu({ icon, className = "btn plain" }: { icon?: ReactNode; className?: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={className} aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {icon}
        Settings
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title="Settings">
        <SettingsForm onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}
