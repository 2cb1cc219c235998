import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { cancelRun, exportUrl, hasEnded, pauseRun, type Run, type RunDetail, resumeRun } from "@/shared/api/runs";
import { Dialog } from "@/shared/ui/dialog";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";

const FORMATS = [
  { format: "md", name: "Markdown", description: "to read and edit" },
  { format: "html", name: "HTML", description: "one file that opens anywhere" },
  { format: "json", name: "JSON", description: "with all quotes and source spans" },
] as const;

/** Buttons to pause, finish early, cancel and export. */
export function RunControls({ run, hasReport }: { run: RunDetail; hasReport: boolean }) {
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
            {isPaused ? "Resume" : pendingRequest === "pause" ? "Pausing after this step…" : "Pause"}
          </button>
          <button
            type="button"
            className="btn"
            disabled={control.isPending || pendingRequest === "stop"}
            title="Stop collecting evidence and write the report from the evidence so far"
            onClick={() => {
              setSentRequest({ what: "stop", status: run.status });
              control.mutate(() => cancelRun(run.id, "finish"));
            }}
          >
            {pendingRequest === "stop" ? "Finishing early…" : "Finish early"}
          </button>
          <button type="button" className="btn danger" onClick={() => setIsConfirming(true)}>
            Cancel
          </button>
        </>
      )}
      {hasReport && <ExportMenu runId={run.id} primary={!active} />}
      <ProblemNote error={control.error} />
      <Dialog open={isConfirming} onClose={() => setIsConfirming(false)} title="Cancel this run?">
        <p>
          The run ends now without a report. Its steps are kept. To get a report of what it has found so far, choose
          Finish early instead.
        </p>
        <div className="actions">
          <button type="button" className="btn" onClick={() => setIsConfirming(false)}>
            Keep running
          </button>
          <button
            type="button"
            className="btn danger"
            onClick={() => {
              setIsConfirming(false);
              control.mutate(() => cancelRun(run.id, "discard"));
            }}
          >
            Cancel without a report
          </button>
        </div>
      </Dialog>
    </>
  );
}

function ExportMenu({ runId, primary }: { runId: string; primary: boolean }) {
  return (
    <Menu
      label="Export"
      className={primary ? "btn primary" : "btn"}
      items={FORMATS.map(({ format, name, description }) => ({
        name,
        description,
        href: exportUrl(runId, format),
        isDownload: true,
      }))}
    />
  );
}
