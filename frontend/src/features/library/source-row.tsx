import { useEffect, useRef } from "react";
import { collectionName, type Source } from "@/shared/api/library";
import { bytes, shortHash } from "@/shared/format/numbers";

const KINDS: Record<string, string> = {
  "application/pdf": "PDF",
  "text/html": "HTML",
  "text/markdown": "Markdown",
  "text/plain": "text",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
};

export function SourceRow({ source, pointed, onErase }: { source: Source; pointed: boolean; onErase(): void }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (pointed) row.current?.scrollIntoView({ block: "center" });
  }, [pointed]);
  return (
    <li ref={row} className={pointed ? "source-row pointed" : "source-row"}>
      <span className="source-title">
        {source.title || source.name}
        {source.title && source.title !== source.name && <span className="source-name">{source.name}</span>}
      </span>
      <span className="source-facts num">
        <span title={source.collection}>{collectionName(source.collection)}</span>
        <span>{KINDS[source.media_type] ?? source.media_type}</span>
        <span>{bytes(source.bytes)}</span>
        <span className="tag" title={`SHA-256 of the stored bytes: ${source.snapshot}`}>
          sha {shortHash(source.snapshot)}
        </span>
      </span>
      <button
        type="button"
        className="btn plain small"
        aria-label={`Erase ${source.title || source.name}`}
        onClick={onErase}
      >
        Erase
      </button>
    </li>
  );
}
