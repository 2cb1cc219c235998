import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { lazyView } from "@/shared/ui/lazy-view";

const ShareForm = lazyView(msg`the form`, async () => (await import("./share-form")).ShareForm);

/** Opens the dialog with the share links of a report. Its code is loaded when it is first opened. */
export function ShareButton({ runId }: { runId: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Trans>Share</Trans>
      </Button>
      <Dialog open={isOpen} onClose={() => setOpen(false)} title={t`Share this report`}>
        <ShareForm runId={runId} onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}
