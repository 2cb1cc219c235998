import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { Run } from "@/shared/api/runs";
import { Link } from "@/shared/routing/routing";
import type { Organize } from "@/shared/runs/use-organize";
import { Button, buttonClass } from "@/shared/ui/button";
import styles from "./runs.module.css";

interface SelectionBarProps {
  runs: readonly Run[];
  organize: Organize;
  onTags(): void;
  onDelete(): void;
  onClear(): void;
}

/** What can be done with the selected runs. It stays in view while the list scrolls. */
export function SelectionBar({ runs, organize, onTags, onDelete, onClear }: SelectionBarProps) {
  if (runs.length === 0) return null;
  const areArchived = runs.every((run) => run.archived_at);
  const arePinned = runs.every((run) => run.pinned_at);
  const [first, second] = runs;
  return (
    <section className={styles.bar} aria-label={t`Selected runs`}>
      <b className="num" role="status">
        <Trans>{runs.length} selected</Trans>
      </b>
      <Button small onClick={onTags}>
        <Trans>Tags…</Trans>
      </Button>
      <Button small onClick={() => organize.pin(runs, !arePinned)}>
        {arePinned ? t`Unpin` : t`Pin`}
      </Button>
      <Button
        small
        onClick={() => {
          organize.archive(runs, !areArchived);
          onClear();
        }}
      >
        {areArchived ? t`Return to the list` : t`Archive`}
      </Button>
      {runs.length === 2 && first && second && (
        <Link to="/runs/compare" search={{ a: first.id, b: second.id }} className={buttonClass("standard", true)}>
          <Trans>Compare</Trans>
        </Link>
      )}
      {runs.length === 1 && (
        <span className="quiet">
          <Trans>Select a second run to compare both.</Trans>
        </span>
      )}
      <Button small kind="danger" onClick={onDelete}>
        <Trans>Delete…</Trans>
      </Button>
      <Button small kind="plain" onClick={onClear}>
        <Trans>Select none</Trans>
      </Button>
    </section>
  );
}
