import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useEffect, useRef } from "react";
import { collectionLabel, type Source } from "@/shared/api/library";
import { formatBytes, shortHash } from "@/shared/format/numbers";

const MEDIA_TYPE_LABELS: Record<string, string | MessageDescriptor> = {
  "application/pdf": "PDF",
  "text/html": "HTML",
  "text/markdown": "Markdown",
  "text/plain": msg`text`,
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
};

function mediaTypeLabel(mediaType: string): string {
  const label = MEDIA_TYPE_LABELS[mediaType] ?? mediaType;
  return typeof label === "string" ? label : i18n._(label);
}

export function SourceRow({ source, highlighted, onErase }: { source: Source; highlighted: boolean; onErase(): void }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (highlighted) row.current?.scrollIntoView({ block: "center" });
  }, [highlighted]);
  return (
    <li ref={row} className={highlighted ? "source-row highlighted" : "source-row"}>
      <span dir="auto" className="source-title">
        {source.title || source.name}
        {source.title && source.title !== source.name && <span className="source-name">{source.name}</span>}
      </span>
      <span className="source-facts num">
        <span dir="auto" title={source.collection}>
          {collectionLabel(source.collection)}
        </span>
        <span>{mediaTypeLabel(source.media_type)}</span>
        <span>{formatBytes(source.size_bytes)}</span>
        <span className="tag" title={t`SHA-256 of the stored file: ${source.snapshot}`}>
          <Trans>sha {shortHash(source.snapshot)}</Trans>
        </span>
      </span>
      <button
        type="button"
        className="btn plain small"
        aria-label={t`Erase ${source.title || source.name}`}
        onClick={onErase}
      >
        <Trans>Erase</Trans>
      </button>
    </li>
  );
}
