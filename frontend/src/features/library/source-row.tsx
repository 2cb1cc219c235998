import { useEffect, useRef } from "react";
import { collectionLabel, type Source } from "@/shared/api/library";
import { formatBytes, shortHash } from "@/shared/format/numbers";

const MEDIA_TYPE_LABELS: Record<string, string> = {
  "application/pdf": "PDF",
  "text/html": "HTML",
  "text/markdown": "Markdown",
  "text/plain": "text",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
};

export function SourceRow({ source, highlighted, onErase }: { source: Source; highlighted: boolean; onErase(): void }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (highlighted) row.current?.scrollIntoView({ block: "center" });
  }, [highlighted]);
  return (
    <li ref={row} className={highlighted ? "source-row highlighted" : "source-row"}>
      <span className="source-title">
        {source.title || source.name}
        {source.title && source.title !== source.name && <span className="source-name">{source.name}</span>}
      </span>
      <span className="source-facts num">
        <span title={source.collection}>{collectionLabel(source.collection)}</span>
        <span>{MEDIA_TYPE_LABELS[source.media_type] ?? source.media_type}</span>
        <span>{formatBytes(source.size_bytes)}</span>
        <span className="tag" title={`SHA-256 of the stored file: ${source.snapshot}`}>
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
