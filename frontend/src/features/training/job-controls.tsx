import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Job, jobQuery, tellJob } from "@/shared/api/training";
import { Dialog } from "@/shared/ui/dialog";
import { ProblemNote } from "@/shared/ui/problem-note";

/** Pause, resume and cancel. */
export function JobControls({ job }: { job: Job }) {
  const [asking, setAsking] = useState(false);
  const client = useQueryClient();
  const tell = useMutation({
    mutationFn: (verb: "pause" | "resume" | "cancel") => tellJob(job.id, verb),
    onSuccess: (out) => {
      client.setQueryData(jobQuery(job.id).queryKey, (was) => was && { ...was, ...out });
      for (const key of ["training-job", "training-jobs", "training-events"])
        client.invalidateQueries({ queryKey: [key] });
    },
  });
  if (job.state === "done" || job.state === "cancelled") return null;
  const rests = job.state === "paused" || job.state === "failed";
  return (
    <>
      <button
        type="button"
        className={rests ? "btn primary" : "btn"}
        disabled={tell.isPending || job.wish === "cancel"}
        title={rests ? "Goes on from its last committed step" : "Rests after the step under way"}
        onClick={() => tell.mutate(rests || job.wish === "pause" ? "resume" : "pause")}
      >
        {rests ? "Resume" : job.wish === "pause" ? "Do not pause" : "Pause"}
      </button>
      <button
        type="button"
        className="btn danger"
        disabled={tell.isPending || job.wish === "cancel"}
        onClick={() => setAsking(true)}
      >
        {job.wish === "cancel" ? "Cancelling after this step…" : "Cancel"}
      </button>
      <ProblemNote error={tell.error} />
      <Dialog open={asking} onClose={() => setAsking(false)} title="Cancel this job?">
        <p>
          It ends after the step under way, for good, and registers no version. Its committed steps, figures and ledger
          stay. To go on later, pause it instead.
        </p>
        <div className="actions">
          <button type="button" className="btn" onClick={() => setAsking(false)}>
            Keep it
          </button>
          <button
            type="button"
            className="btn danger"
            onClick={() => {
              setAsking(false);
              tell.mutate("cancel");
            }}
          >
            Cancel the job
          </button>
        </div>
      </Dialog>
    </>
  );
}
