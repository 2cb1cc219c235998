import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { cancelRun, exportAddress, hasEnded, pauseRun, type Run, type RunDetail, resumeRun } from "@/shared/api/runs";
import { Dialog } from "@/shared/ui/dialog";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";

const FORMATS = [
  { format: "md", name: "Markdown", says: "to read and edit" },
  { format: "html", name: "HTML", says: "one file that opens anywhere" },
  { format: "json", name: "JSON", says: "with every quote and span" },
] as const;

/** Pause, stop, cancel and export. */
export function RunControls({ run, hasReport }: { run: RunDetail; hasReport: boolean }) {
  const [asking, setAsking] = useState(false);
  const client = useQueryClient();
  // Pause and stop take effect at the end of the step under way; until then the button says that it was heard.
  const [asked, setAsked] = useState<{ what: "pause" | "stop"; status: RunDetail["status"] } | null>(null);
  const waiting = asked?.status === run.status ? asked.what : null;
  const act = useMutation({
    mutationFn: (call: () => Promise<Run>) => call(),
    onSuccess: (out) => client.setQueryData<RunDetail>(["run", run.id], (was) => was && { ...was, ...out }),
    onError: () => setAsked(null),
  });
  const active = !hasEnded(run);
  const halted = run.status === "paused";
  return (
    <>
      {active && (
        <>
          <button
            type="button"
            className="btn"
            disabled={act.isPending || waiting !== null}
            onClick={() => {
              if (!halted) setAsked({ what: "pause", status: run.status });
              act.mutate(() => (halted ? resumeRun(run.id) : pauseRun(run.id)));
            }}
          >
            {halted ? "Resume" : waiting === "pause" ? "Pausing after this step…" : "Pause"}
          </button>
          <button
            type="button"
            className="btn"
            disabled={act.isPending || waiting === "stop"}
            title="Stops collecting and writes a report of what there is"
            onClick={() => {
              setAsked({ what: "stop", status: run.status });
              act.mutate(() => cancelRun(run.id, "write"));
            }}
          >
            {waiting === "stop" ? "Stopping to write…" : "Stop and write now"}
          </button>
          <button type="button" className="btn danger" onClick={() => setAsking(true)}>
            Cancel
          </button>
        </>
      )}
      {hasReport && <ExportMenu run={run.id} primary={!active} />}
      <ProblemNote error={act.error} />
      <Dialog open={asking} onClose={() => setAsking(false)} title="Cancel this run?">
        <p>
          It ends now and writes no report. Its steps stay on record. To get a report of what it has found so far,
          choose Stop and write now instead.
        </p>
        <div className="actions">
          <button type="button" className="btn" onClick={() => setAsking(false)}>
            Keep it running
          </button>
          <button
            type="button"
            className="btn danger"
            onClick={() => {
              setAsking(false);
              act.mutate(() => cancelRun(run.id, "discard"));
            }}
          >
            Cancel without a report
          </button>
        </div>
      </Dialog>
    </>
  );
}

function ExportMenu({ run, primary }: { run: string; primary: boolean }) {
  return (
    <Menu label="Export" className={primary ? "btn primary" : "btn"}>
      {FORMATS.map(({ format, name, says }) => (
        <a key={format} role="menuitem" className="menu-item" href={exportAddress(run, format)} download>
          {name}
          <small>{says}</small>
        </a>
      ))}
    </Menu>
  );
}
