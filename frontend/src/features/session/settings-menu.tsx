import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type ReactNode, useState } from "react";
import { Dialog } from "@/shared/ui/dialog";
import { lazyView } from "@/shared/ui/lazy-view";

const SettingsForm = lazyView(msg`the form`, async () => (await import("./settings-form")).SettingsForm);

/** The button of the settings that change most often: language, training opt-in, the daily spending limit, sign-out. */
export function SettingsMenu({ icon, className }: { icon: ReactNode; className: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={className} aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {icon}
        <Trans>Account</Trans>
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title={t`Account`}>
        <SettingsForm onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}
