import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Erased, eraseSource, type Source } from "@/shared/api/library";
import { counted } from "@/shared/format/numbers";
import { Dialog } from "@/shared/ui/dialog";
import { ProblemNote } from "@/shared/ui/problem-note";

/** Asks before erasing, and says afterwards what was removed. */
export function EraseDialog({ source, onClose }: { source: Source; onClose(): void }) {
  const client = useQueryClient();
  const erase = useMutation({
    mutationFn: () => eraseSource(source.id),
    onSuccess: () => {
      for (const key of [["library"], ["passage"], ["report"], ["step"]]) client.invalidateQueries({ queryKey: key });
    },
  });
  const name = source.title || source.name;
  if (erase.data) {
    return (
      <Dialog open onClose={onClose} title="Erased">
        <p role="status">
          {name} is gone: {removedWords(erase.data)}. Where a report quoted it, the report now says so.
        </p>
        <div className="actions">
          <button type="button" className="btn primary" onClick={onClose}>
            Done
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title={`Erase ${name}?`}>
      <p>
        Its stored bytes, its extracted text and passages, and the copies of its text in the steps of runs are removed.
        This cannot be undone.
      </p>
      <ProblemNote error={erase.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Keep it
        </button>
        <button type="button" className="btn danger" disabled={erase.isPending} onClick={() => erase.mutate()}>
          {erase.isPending ? "Erasing…" : "Erase"}
        </button>
      </div>
    </Dialog>
  );
}

export function removedWords(erased: Erased): string {
  return [
    counted(erased.sources, "source"),
    counted(erased.snapshots, "stored file"),
    counted(erased.passages, "passage"),
    `copies in ${counted(erased.steps, "step")} of runs`,
  ].join(", ");
}
