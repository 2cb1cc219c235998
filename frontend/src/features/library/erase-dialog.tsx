import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Erased, eraseSource, type Source } from "@/shared/api/library";
import { joinParts } from "@/shared/format/lists";
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
      <Dialog open onClose={onClose} title={t`Erased`}>
        <p role="status">
          <Trans>
            {name} was erased: {describeErased(erase.data)}. Reports that quote it now say so.
          </Trans>
        </p>
        <div className="actions">
          <button type="button" className="btn primary" onClick={onClose}>
            <Trans>Done</Trans>
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title={t`Erase ${name}?`}>
      <p>
        <Trans>
          This removes its stored file, its extracted text and passages, and the copies of its text in the steps of
          runs. It cannot be undone.
        </Trans>
      </p>
      <ProblemNote error={erase.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          <Trans>Cancel</Trans>
        </button>
        <button type="button" className="btn danger" disabled={erase.isPending} onClick={() => erase.mutate()}>
          {erase.isPending ? t`Erasing…` : t`Erase`}
        </button>
      </div>
    </Dialog>
  );
}

export function describeErased(erased: Erased): string {
  return joinParts([
    plural(erased.sources, { one: "# source", other: "# sources" }),
    plural(erased.snapshots, { one: "# stored file", other: "# stored files" }),
    plural(erased.passages, { one: "# passage", other: "# passages" }),
    t`copies in ${plural(erased.steps, { one: "# step", other: "# steps" })} of runs`,
  ]);
}
