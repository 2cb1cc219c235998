import { t } from "@lingui/core/macro";
import type { Run } from "../api/runs";
import { hasEnded } from "../api/runs";
import type { MenuAction } from "../ui/menu";
import type { Organize } from "./use-organize";

export interface RunActionHandlers {
  organize: Organize;
  onRename(): void;
  onTags(): void;
  onDelete(): void;
  /** Compare it with another run. Without it, the menu does not offer that. */
  onCompare?: () => void;
}

/** Return what can be done with one run, for its menu. */
export function listRunActions(run: Run, handlers: RunActionHandlers): MenuAction[] {
  const { organize, onRename, onTags, onDelete, onCompare } = handlers;
  const isPinned = run.pinned_at != null;
  const isArchived = run.archived_at != null;
  return [
    { name: t`Rename`, onAction: onRename },
    { name: t`Tags…`, onAction: onTags },
    { name: isPinned ? t`Unpin` : t`Pin`, onAction: () => organize.pin([run], !isPinned) },
    {
      name: isArchived ? t`Return to the list` : t`Archive`,
      onAction: () => organize.archive([run], !isArchived),
    },
    ...(onCompare ? [{ name: t`Compare…`, onAction: onCompare }] : []),
    {
      name: t`Delete…`,
      ...(!hasEnded(run) && { description: t`Cancel the run first.` }),
      onAction: onDelete,
    },
  ];
}
