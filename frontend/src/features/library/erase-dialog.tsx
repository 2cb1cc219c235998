import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Erased, eraseSource, type Source } from "@/shared/api/library";
import { pluralize } from "@/shared/format/numbers";
import { Dialog } from "@/shared/ui/dialog";
import { ProblemNote } from "@/shared/ui/problem-note";

/** Asks for confirmation before a source is erased, and shows what was removed. */
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
          {name} was erased: {describeErased(erase.data)}. Reports that quote it now say so.
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
        This removes its stored file, its extracted text and passages, and the copies of its text in the steps of runs.
        It cannot be undone.
      </p>
      <ProblemNote error={erase.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="btn danger" disabled={erase.isPending} onClick={() => erase.mutate()}>
          {erase.isPending ? "Erasing…" : "Erase"}
        </button>
      </div>
    </Dialog>
  );
}

export function describeErased(erased: Erased): string {
  return [
    pluralize(erased.sources, "source"),
    pluralize(erased.snapshots, "stored file"),
    pluralize(erased.passages, "passage"),
    `copies in ${pluralize(erased.steps, "step")} of runs`,
  ].join(", ");
}
