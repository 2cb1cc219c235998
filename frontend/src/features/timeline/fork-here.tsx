import { msg, t } from "@lingui/core/macro";
import { useState } from "react";
import { Dialog } from "@/shared/ui/dialog";
import { lazyView } from "@/shared/ui/lazy-view";

const ForkForm = lazyView(msg`the form`, async () => (await import("./fork-form")).ForkForm);

interface ForkHereProps {
  runId: string;
  /** The last step that is copied. */
  at: number;
  /** Message that the fork receives if it is not changed. */
  message: string;
}

/** Opens the form for a new run that continues after a step of this one. */
export function ForkHere({ runId, at, message }: ForkHereProps) {
  const [isOpen, setOpen] = useState(false);
  const title = t`Fork after step ${at}`;
  return (
    <>
      <p>
        <button
          type="button"
          className="linkish"
          title={t`Start a new run that continues after this step. The recorded steps up to here are not repeated.`}
          onClick={() => setOpen(true)}
        >
          {message ? t`Change this message in a fork…` : t`Fork from here…`}
        </button>
      </p>
      <Dialog open={isOpen} onClose={() => setOpen(false)} title={title}>
        {isOpen && <ForkForm runId={runId} at={at} message={message} onClose={() => setOpen(false)} />}
      </Dialog>
    </>
  );
}
