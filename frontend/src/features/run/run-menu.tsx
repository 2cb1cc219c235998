import { t } from "@lingui/core/macro";
import { useState } from "react";
import type { RunDetail } from "@/shared/api/runs";
import { Link, useNavigate } from "@/shared/routing/routing";
import { DeleteDialog } from "@/shared/runs/delete-dialog";
import { listRunActions } from "@/shared/runs/run-actions";
import { TagsDialog } from "@/shared/runs/tags-dialog";
import { TitleField } from "@/shared/runs/title-field";
import { useOrganize } from "@/shared/runs/use-organize";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./run-menu.module.css";

interface RunMenuProps {
  run: RunDetail;
  isRenaming: boolean;
  onRenaming(isRenaming: boolean): void;
}

/** The menu that names, tags, pins, archives, compares and deletes a run, and the field for its title. */
export function RunMenu({ run, isRenaming, onRenaming }: RunMenuProps) {
  const organize = useOrganize();
  const navigate = useNavigate();
  const [open, setOpen] = useState<"tags" | "delete" | null>(null);
  const close = () => setOpen(null);
  const actions = listRunActions(run, {
    organize,
    onRename: () => onRenaming(true),
    onTags: () => setOpen("tags"),
    onDelete: () => setOpen("delete"),
    onCompare: () => navigate({ to: "/runs/compare", search: { a: run.id } }),
  });
  return (
    <>
      {isRenaming && (
        <span className={styles.field}>
          <TitleField run={run} onSave={(title) => organize.rename(run, title)} onClose={() => onRenaming(false)} />
        </span>
      )}
      <Labels run={run} />
      <Menu label="⋯" name={t`Actions for this run`} className={`btn plain small ${styles.menu}`} items={actions} />
      <ProblemNote error={organize.error} />
      {open === "tags" && <TagsDialog runs={[run]} organize={organize} onClose={close} />}
      {open === "delete" && (
        <DeleteDialog runs={[run]} onClose={close} onDeleted={() => navigate({ to: "/runs", search: {} })} />
      )}
    </>
  );
}

/** Pin, archive and tags. A tag leads to the runs that have it. */
function Labels({ run }: { run: RunDetail }) {
  if (!run.pinned_at && !run.archived_at && run.tags.length === 0) return null;
  return (
    <span className={styles.labels}>
      {run.pinned_at && <span>{t`Pinned`}</span>}
      {run.archived_at && <span>{t`Archived`}</span>}
      {run.tags.map((tag) => (
        <Link key={tag} to="/runs" search={{ tag }} className={styles.tag}>
          <bdi>{tag}</bdi>
        </Link>
      ))}
    </span>
  );
}
