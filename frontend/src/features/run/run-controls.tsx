import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { cancelRun, hasEnded, pauseRun, type Run, type RunDetail, resumeRun } from "@/shared/api/runs";
import { Dialog } from "@/shared/ui/dialog";
import { ProblemNote } from "@/shared/ui/problem-note";
import { ShareButton } from "./share-button";

interface RunControlsProps {
  run: RunDetail;
  hasReport: boolean;
  /** The menu that exports the report. */
  exports: ReactNode;
}

/** Buttons to pause, finish early, cancel, share and export. */
export function RunControls({ run, hasReport, exports }: RunControlsProps) {
  const [isConfirming, setIsConfirming] = useState(false);
  const client = useQueryClient();
  // Pause and finish take effect at the end of the current step. Until then the button shows that the request was sent.
  const [sentRequest, setSentRequest] = useState<{ what: "pause" | "stop"; status: RunDetail["status"] } | null>(null);
  const pendingRequest = sentRequest?.status === run.status ? sentRequest.what : null;
  const control = useMutation({
    mutationFn: (call: () => Promise<Run>) => call(),
    onSuccess: (out) => client.setQueryData<RunDetail>(["run", run.id], (was) => was && { ...was, ...out }),
    onError: () => setSentRequest(null),
  });
  const active = !hasEnded(run);
  const isPaused = run.status === "paused";
  return (
    <>
      {active && (
        <>
          <button
            type="button"
            className="btn"
            disabled={control.isPending || pendingRequest !== null}
            onClick={() => {
              if (!isPaused) setSentRequest({ what: "pause", status: run.status });
              control.mutate(() => (isPaused ? resumeRun(run.id) : pauseRun(run.id)));
            }}
          >
            {isPaused ? t`Resume` : pendingRequest === "pause" ? t`Pausing after this step…` : t`Pause`}
          </button>
          <button
            type="button"
            className="btn"
            disabled={control.isPending || pendingRequest === "stop"}
            title={t`Stop collecting evidence and write the report from the evidence so far`}
            onClick={() => {
              setSentRequest({ what: "stop", status: run.status });
              control.mutate(() => cancelRun(run.id, "finish"));
            }}
          >
            {pendingRequest === "stop" ? t`Finishing early…` : t`Finish early`}
          </button>
          <button type="button" className="btn danger" onClick={() => setIsConfirming(true)}>
            <Trans>Cancel</Trans>
          </button>
        </>
      )}
      {hasReport && <ShareButton runId={run.id} />}
      {exports}
      <ProblemNote error={control.error} />
      <Dialog open={isConfirming} onClose={() => setIsConfirming(false)} title={t`Cancel this run?`}>
        <p>
          <Trans>
            The run ends now without a report. Its steps are kept. To get a report of what it has found so far, choose
            Finish early instead.
          </Trans>
        </p>
        <div className="actions">
          <button type="button" className="btn" onClick={() => setIsConfirming(false)}>
            <Trans>Keep running</Trans>
          </button>
          <button
            type="button"
            className="btn danger"
            onClick={() => {
              setIsConfirming(false);
              control.mutate(() => cancelRun(run.id, "discard"));
            }}
          >
            <Trans>Cancel without a report</Trans>
          </button>
        </div>
      </Dialog>
    </>
  );
}
