import type { Run } from "../api/runs";
import { DeleteDialog } from "./delete-dialog";
import { TagsDialog } from "./tags-dialog";
import type { Organize } from "./use-organize";

interface RunDialogProps {
  kind: "tags" | "delete";
  run: Run;
  organize: Organize;
  onClose(): void;
  onDeleted(): void;
}

/** The dialog that tags or deletes one run. Its code is loaded when it is opened. */
export function RunDialog({ kind, run, organize, onClose, onDeleted }: RunDialogProps) {
  return kind === "tags" ? (
    <TagsDialog runs={[run]} organize={organize} onClose={onClose} />
  ) : (
    <DeleteDialog runs={[run]} onClose={onClose} onDeleted={onDeleted} />
  );
}
