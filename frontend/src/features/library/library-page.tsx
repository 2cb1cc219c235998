import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type DragEvent, useState } from "react";
import {
  collectionName,
  collectionsQuery,
  isServerFolder,
  passagesQuery,
  type Source,
  sourcesQuery,
} from "@/shared/api/library";
import { count, counted } from "@/shared/format/numbers";
import { useSettled } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Failure, Loaded, More } from "@/shared/ui/loaded";
import { type Picked, readDrop, readField } from "@/shared/upload/read-drop";
import { UploadList } from "@/shared/upload/upload-list";
import { useUpload } from "@/shared/upload/use-upload";
import { EraseDialog } from "./erase-dialog";
import { HitList } from "./hit-list";
import { SourceRow } from "./source-row";
import "./library-page.css";

interface LibraryPageProps {
  /** A source to point out. null: none. */
  pointed: string | null;
  /** null: all. */
  collection: string | null;
  onCollection(name: string | null): void;
}

const ALL = "all";

export function LibraryPage({ pointed, collection, onCollection }: LibraryPageProps) {
  const [search, setSearch] = useState("");
  const [erasing, setErasing] = useState<Source | null>(null);
  const settled = useSettled(search.trim(), 250);
  const upload = useUpload("library.documents");
  const collections = useQuery(collectionsQuery);
  const sources = useInfiniteQuery(sourcesQuery(collection, settled));
  const hits = useQuery(passagesQuery(collection, settled));
  useHotkeys([
    { keys: "/", does: "Search the library", run: () => document.getElementById("library-search")?.focus() },
  ]);

  // Single files join the collection in view, unless that is a folder of the server's machine.
  const joined = collection === null || isServerFolder(collection) ? "" : collection;
  const take = (picked: Picked[] | Promise<Picked[]>) => upload.send(picked, joined);
  const dropped = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    take(readDrop(event.dataTransfer));
  };

  return (
    <main className="library" onDragOver={(event) => event.preventDefault()} onDrop={dropped}>
      <div className="library-head">
        <h1>Library</h1>
        <span className="quiet num">{sources.data?.pages[0] && counted(sources.data.pages[0].total, "document")}</span>
        <span className="library-add">
          <FileButton text="Add files" onPick={take} />
          <FileButton text="Add a folder" folder onPick={take} />
        </span>
      </div>
      <UploadList state={upload.state} onClear={upload.clear} />
      <div className="library-filters">
        <input
          id="library-search"
          type="search"
          className="field"
          aria-label="Search the library"
          placeholder="Search names and passages"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <select
          className="field"
          aria-label="Collection"
          value={collection === null ? ALL : `=${collection}`}
          disabled={!collections.data}
          onChange={(event) => onCollection(event.target.value === ALL ? null : event.target.value.slice(1))}
        >
          <option value={ALL}>All collections</option>
          {collection !== null && !collections.data?.some(({ name }) => name === collection) && (
            <option value={`=${collection}`}>{collectionName(collection)}</option>
          )}
          {collections.data?.map(({ name, count: held }) => (
            <option key={name} value={`=${name}`}>
              {collectionName(name)} ({count(held)})
            </option>
          ))}
        </select>
      </div>
      <Failure query={collections} />
      {settled.length > 1 && <HitList query={hits} />}
      <Loaded
        query={sources}
        what="the documents"
        empty={({ pages }) => (pages[0]?.items.length === 0 ? <NoDocuments searched={settled} /> : null)}
      >
        {({ pages }) => (
          <ul className="library-list" aria-label="Documents">
            {pages
              .flatMap(({ items }) => items)
              .map((source) => (
                <SourceRow
                  key={source.id}
                  source={source}
                  pointed={source.id === pointed}
                  onErase={() => setErasing(source)}
                />
              ))}
          </ul>
        )}
      </Loaded>
      <More query={sources} text="More documents" />
      {erasing && <EraseDialog source={erasing} onClose={() => setErasing(null)} />}
    </main>
  );
}

function NoDocuments({ searched }: { searched: string }) {
  if (searched) return <p className="quiet library-none">No document is named like “{searched}”.</p>;
  return (
    <div className="empty library-none">
      <b>Nothing here yet</b>
      Drop a folder of papers, notes or documentation on this page. PDF, HTML, Markdown, plain text and Word are read.
      From a terminal: <span className="mono">offing ask "…" --docs FOLDER</span> does both at once.
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
  onPick(picked: Picked[]): void;
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
