import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { cancelRun, exportUrl, hasEnded, pauseRun, type Run, type RunDetail, resumeRun } from "@/shared/api/runs";
import { Dialog } from "@/shared/ui/dialog";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";
import { ShareButton } from "./share-button";

const FORMATS = [
  { format: "md", name: "Markdown", description: msg`to read and edit` },
  { format: "html", name: "HTML", description: msg`one file that opens anywhere` },
  { format: "json", name: "JSON", description: msg`with all quotes and source spans` },
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
      {hasReport && <ExportMenu runId={run.id} primary={!active} />}
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

function ExportMenu({ runId, primary }: { runId: string; primary: boolean }) {
  return (
    <Menu
      label={t`Export`}
      className={primary ? "btn primary" : "btn"}
      items={FORMATS.map(({ format, name, description }) => ({
        name,
        description: i18n._(description),
        href: exportUrl(runId, format),
        isDownload: true,
      }))}
    />
  );
}
