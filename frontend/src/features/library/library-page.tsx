import { plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type DragEvent, useState } from "react";
import {
  collectionLabel,
  collectionsQuery,
  isServerFolder,
  type LibraryStatus,
  libraryStatusQuery,
  passagesQuery,
  type Source,
  sourcesQuery,
} from "@/shared/api/library";
import { formatCount } from "@/shared/format/numbers";
import { Button } from "@/shared/ui/button";
import { useDebounced } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Failure, Loaded, LoadMore } from "@/shared/ui/loaded";
import { type PickedFolder, readDrop, readField } from "@/shared/upload/read-drop";
import { UploadList } from "@/shared/upload/upload-list";
import { useUpload } from "@/shared/upload/use-upload";
import { MoveDialog } from "./collection-dialogs";
import { CollectionList, CollectionMenu } from "./collection-list";
import styles from "./collections.module.css";
import { EraseDialog } from "./erase-dialog";
import { HitList } from "./hit-list";
import { SourceRow } from "./source-row";
import "./library-page.css";

interface LibraryPageProps {
  /** Id of the source to highlight. `null` means none. */
  highlighted: string | null;
  /** `null` means all collections. */
  collection: string | null;
  onCollection(name: string | null): void;
  /** Text that names and passages are searched for. */
  search: string;
  onSearch(text: string): void;
}

const ALL = "all";

export function LibraryPage({ highlighted, collection, onCollection, search, onSearch }: LibraryPageProps) {
  const [erasing, setErasing] = useState<Source | null>(null);
  const [selected, setSelected] = useState<readonly Source[]>([]);
  const [isMoving, setMoving] = useState(false);
  const debouncedSearch = useDebounced(search.trim(), 250);
  const upload = useUpload("library.documents");
  const status = useQuery(libraryStatusQuery);
  const collections = useQuery(collectionsQuery);
  const sources = useInfiniteQuery(sourcesQuery(collection, debouncedSearch));
  const hits = useQuery(passagesQuery(collection, debouncedSearch));
  useHotkeys([
    { keys: "/", description: t`Search the library`, run: () => document.getElementById("library-search")?.focus() },
  ]);

  const current = collection ? collections.data?.find(({ name }) => name === collection) : undefined;

  // Single files are added to the selected collection, unless it is a folder on the server.
  const targetCollection = collection === null || isServerFolder(collection) ? "" : collection;
  const uploadPicked = (picked: PickedFolder[] | Promise<PickedFolder[]>) => upload.send(picked, targetCollection);
  const handleDrop = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    uploadPicked(readDrop(event.dataTransfer));
  };

  return (
    <main className="library" onDragOver={(event) => event.preventDefault()} onDrop={handleDrop}>
      <div className="library-head">
        <h1>
          <Trans>Library</Trans>
        </h1>
        <span className="quiet num">
          {sources.data?.pages[0] && plural(sources.data.pages[0].total, { one: "# document", other: "# documents" })}
        </span>
        <span className="library-add">
          <FileButton text={t`Add files`} onPick={uploadPicked} />
          <FileButton text={t`Add a folder`} folder onPick={uploadPicked} />
        </span>
      </div>
      <UploadList state={upload.state} onClear={upload.clear} />
      <div className="library-filters">
        <input
          dir="auto"
          id="library-search"
          type="search"
          className="field"
          aria-label={t`Search the library`}
          placeholder={t`Search names and passages`}
          value={search}
          onChange={(event) => onSearch(event.target.value)}
        />
        <select
          className="field"
          aria-label={t`Collection`}
          value={collection === null ? ALL : `=${collection}`}
          disabled={!collections.data}
          onChange={(event) => onCollection(event.target.value === ALL ? null : event.target.value.slice(1))}
        >
          <option value={ALL}>
            <Trans>All collections</Trans>
          </option>
          {collection !== null && !collections.data?.some(({ name }) => name === collection) && (
            <option value={`=${collection}`}>{collectionLabel(collection)}</option>
          )}
          {collections.data?.map(({ name, count: sourceCount }) => (
            <option key={name} value={`=${name}`}>
              {collectionLabel(name)} ({formatCount(sourceCount)})
            </option>
          ))}
        </select>
      </div>
      <Failure query={collections} />
      <Failure query={status} />
      {status.data?.embedding && <VectorCoverage status={status.data} embedding={status.data.embedding} />}
      {current && (
        <div className={styles.current}>
          <h2 dir="auto">{collectionLabel(current.name)}</h2>
          <CollectionMenu collection={current} onRenamed={onCollection} onDeleted={() => onCollection(null)} />
        </div>
      )}
      {collection === null && !debouncedSearch && collections.data && (
        <CollectionList collections={collections.data} onOpen={onCollection} />
      )}
      {debouncedSearch.length > 1 && <HitList query={hits} />}
      <Loaded
        query={sources}
        label={t`the documents`}
        empty={({ pages }) => (pages[0]?.items.length === 0 ? <NoDocuments search={debouncedSearch} /> : null)}
      >
        {({ pages }) => (
          <ul className="library-list" aria-label={t`Documents`}>
            {pages
              .flatMap(({ items }) => items)
              .map((source) => (
                <SourceRow
                  key={source.id}
                  source={source}
                  highlighted={source.id === highlighted}
                  isSelected={selected.some(({ id }) => id === source.id)}
                  onSelect={() => setSelected(toggleSource(selected, source))}
                  onErase={() => setErasing(source)}
                />
              ))}
          </ul>
        )}
      </Loaded>
      <LoadMore query={sources} text={t`More documents`} />
      {selected.length > 0 && (
        <section className={styles.bar} aria-label={t`Selected documents`}>
          <b className="num" role="status">
            <Trans>{selected.length} selected</Trans>
          </b>
          <Button small onClick={() => setMoving(true)}>
            <Trans>Move to a collection…</Trans>
          </Button>
          <Button small kind="plain" onClick={() => setSelected([])}>
            <Trans>Select none</Trans>
          </Button>
        </section>
      )}
      {isMoving && <MoveDialog sources={selected} onClose={() => setMoving(false)} onMoved={() => setSelected([])} />}
      {erasing && <EraseDialog source={erasing} onClose={() => setErasing(null)} />}
    </main>
  );
}

/** Number of documents that can be moved at once, as the server has it. */
const MAX_MOVED = 200;

function toggleSource(selected: readonly Source[], source: Source): readonly Source[] {
  const rest = selected.filter(({ id }) => id !== source.id);
  return rest.length < selected.length ? rest : [...rest, source].slice(-MAX_MOVED);
}

/** Says which texts are found by their words alone. */
function VectorCoverage({
  status,
  embedding,
}: {
  status: LibraryStatus;
  embedding: NonNullable<LibraryStatus["embedding"]>;
}) {
  const { filled_count: filled, rejected_count: rejected } = embedding;
  if (filled === status.text_count && rejected === 0) return null;
  const found = formatCount(filled);
  return (
    <p className="quiet">
      <Trans>
        <Plural
          value={status.text_count}
          one={`${found} of # text can be found by meaning; the others by their words alone.`}
          other={`${found} of # texts can be found by meaning; the others by their words alone.`}
        />
      </Trans>
      {rejected > 0 &&
        plural(rejected, {
          one: " The embedding model rejects passages of # text.",
          other: " The embedding model rejects passages of # texts.",
        })}
    </p>
  );
}

function NoDocuments({ search }: { search: string }) {
  if (search)
    return (
      <p className="quiet library-none">
        <Trans>No document name matches “{search}”.</Trans>
      </p>
    );
  return (
    <div className="empty library-none">
      <Trans>
        <b>No documents yet</b>
        Drop a folder of papers, notes or documentation on this page. Supported formats are PDF, HTML, Markdown, plain
        text and Word. In a terminal, <span className="mono">offing ask "…" --docs FOLDER</span> adds a folder and asks
        a question about it.
      </Trans>
    </div>
  );
}

function FileButton({
  text,
  folder = false,
  onPick,
}: {
  text: string;
  folder?: boolean;
  onPick(picked: PickedFolder[]): void;
}) {
  return (
    <label className={folder ? "btn" : "btn primary"}>
      {text}
      <input
        type="file"
        className="visually-hidden"
        multiple
        accept={folder ? undefined : ".pdf,.html,.htm,.md,.markdown,.txt,.docx"}
        {...(folder ? { webkitdirectory: "" } : {})}
        onChange={(event) => {
          if (event.target.files) onPick(readField(event.target.files));
          event.target.value = "";
        }}
      />
    </label>
  );
}
