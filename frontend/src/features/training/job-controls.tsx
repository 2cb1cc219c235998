import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { controlJob, type Job, jobQuery } from "@/shared/api/training";
import { Dialog } from "@/shared/ui/dialog";
import { ProblemNote } from "@/shared/ui/problem-note";

/** Buttons to pause, resume and cancel. */
export function JobControls({ job }: { job: Job }) {
  const [isConfirming, setIsConfirming] = useState(false);
  const client = useQueryClient();
  const control = useMutation({
    mutationFn: (action: "pause" | "resume" | "cancel") => controlJob(job.id, action),
    onSuccess: (out) => {
      client.setQueryData(jobQuery(job.id).queryKey, (was) => was && { ...was, ...out });
      for (const key of ["training-job", "training-jobs", "training-events"])
        client.invalidateQueries({ queryKey: [key] });
    },
  });
  if (job.state === "done" || job.state === "cancelled") return null;
  const canResume = job.state === "paused" || job.state === "failed";
  return (
    <>
      <button
        type="button"
        className={canResume ? "btn primary" : "btn"}
        disabled={control.isPending || job.requested_action === "cancel"}
        title={canResume ? t`Continue after the last committed step` : t`Pause after the current training step`}
        onClick={() => control.mutate(canResume || job.requested_action === "pause" ? "resume" : "pause")}
      >
        {canResume ? t`Resume` : job.requested_action === "pause" ? t`Keep running` : t`Pause`}
      </button>
      <button
        type="button"
        className="btn danger"
        disabled={control.isPending || job.requested_action === "cancel"}
        onClick={() => setIsConfirming(true)}
      >
        {job.requested_action === "cancel" ? t`Cancelling after this step…` : t`Cancel`}
      </button>
      <ProblemNote error={control.error} />
      <Dialog open={isConfirming} onClose={() => setIsConfirming(false)} title={t`Cancel this job?`}>
        <p>
          <Trans>
            The job ends after the current training step and registers no version. It cannot be resumed. Its committed
            steps, metrics and ledger are kept. To continue it later, pause it instead.
          </Trans>
        </p>
        <div className="actions">
          <button type="button" className="btn" onClick={() => setIsConfirming(false)}>
            <Trans>Keep the job</Trans>
          </button>
          <button
            type="button"
            className="btn danger"
            onClick={() => {
              setIsConfirming(false);
              control.mutate("cancel");
            }}
          >
            <Trans>Cancel the job</Trans>
          </button>
        </div>
      </Dialog>
    </>
  );
}
