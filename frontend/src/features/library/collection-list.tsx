import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { type Collection, collectionLabel, isServerFolder } from "@/shared/api/library";
import { formatAgo, formatCount } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { Menu, type MenuAction } from "@/shared/ui/menu";
import { DeleteCollectionDialog, RenameCollectionDialog } from "./collection-dialogs";
import styles from "./collections.module.css";

interface CollectionListProps {
  collections: readonly Collection[];
  onOpen(name: string): void;
}

/** The collections of the library with the number and the state of their documents. */
export function CollectionList({ collections, onOpen }: CollectionListProps) {
  const now = useNow(60_000);
  if (collections.length === 0) return null;
  return (
    <section aria-label={t`Collections`} className={styles.section}>
      <h2 className="label">
        <Trans>Collections</Trans>
      </h2>
      <ul>
        {collections.map((collection) => (
          <li key={collection.name} className={styles.row}>
            <button
              type="button"
              className={styles.name}
              title={collection.name}
              onClick={() => onOpen(collection.name)}
            >
              <bdi>{collectionLabel(collection.name)}</bdi>
            </button>
            <span className={styles.facts}>
              <span className="num">{plural(collection.count, { one: "# document", other: "# documents" })}</span>
              {describeState(collection).map((state) => (
                <span key={state}>{state}</span>
              ))}
              {collection.latest_added_at && <span>{t`added to ${formatAgo(collection.latest_added_at, now)}`}</span>}
            </span>
            <CollectionMenu collection={collection} onRenamed={() => undefined} onDeleted={() => undefined} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function describeState({ name, removed_count: removed = 0, active_runs: active = 0 }: Collection): string[] {
  return [
    ...(isServerFolder(name) ? [t`folder of the server`] : []),
    ...(removed > 0 ? [t`${formatCount(removed)} missing from the folder`] : []),
    ...(active > 0 ? [plural(active, { one: "# active run reads it", other: "# active runs read it" })] : []),
  ];
}

interface CollectionMenuProps {
  collection: Collection;
  onRenamed(name: string): void;
  onDeleted(): void;
}

/** What can be done with a collection. Single files are none that a person has named. */
export function CollectionMenu({ collection, onRenamed, onDeleted }: CollectionMenuProps) {
  const [open, setOpen] = useState<"rename" | "delete" | null>(null);
  if (collection.name === "") return <span />;
  const rename: MenuAction = { name: t`Rename…`, onAction: () => setOpen("rename") };
  const items = [
    ...(isServerFolder(collection.name) ? [] : [rename]),
    { name: t`Delete…`, onAction: () => setOpen("delete") },
  ];
  const label = collectionLabel(collection.name);
  return (
    <>
      <Menu label="⋯" name={t`Actions for the collection ${label}`} className="btn plain small" items={items} />
      {open === "rename" && (
        <RenameCollectionDialog collection={collection} onClose={() => setOpen(null)} onRenamed={onRenamed} />
      )}
      {open === "delete" && (
        <DeleteCollectionDialog collection={collection} onClose={() => setOpen(null)} onDeleted={onDeleted} />
      )}
    </>
  );
}
