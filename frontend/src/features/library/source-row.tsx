import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useEffect, useRef } from "react";
import { collectionLabel, type Source, sourceName } from "@/shared/api/library";
import { OpenDocument } from "@/shared/document/open-document";
import { formatBytes, shortHash } from "@/shared/format/numbers";
import { Link } from "@/shared/routing/routing";
import styles from "./collections.module.css";

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

interface SourceRowProps {
  source: Source;
  highlighted: boolean;
  isSelected: boolean;
  onSelect(): void;
  onErase(): void;
}

export function SourceRow({ source, highlighted, isSelected, onSelect, onErase }: SourceRowProps) {
  const name = sourceName(source);
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (highlighted) row.current?.scrollIntoView({ block: "center" });
  }, [highlighted]);
  return (
    <li ref={row} className={highlighted ? "source-row highlighted" : "source-row"}>
      <label className={styles.check}>
        <input type="checkbox" checked={isSelected} aria-label={t`Select “${name}”`} onChange={onSelect} />
      </label>
      <span dir="auto" className="source-title">
        <OpenDocument className="source-open" title={name} textId={source.text_id}>
          {name}
        </OpenDocument>
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
      <Link
        to="/runs"
        search={{ cites: source.id }}
        className="btn plain small"
        aria-label={t`Cited in: runs that cite ${name}`}
        title={t`Runs whose reports cite this document`}
      >
        <Trans>Cited in</Trans>
      </Link>
      <button type="button" className="btn plain small" aria-label={t`Erase ${name}`} onClick={onErase}>
        <Trans>Erase</Trans>
      </button>
    </li>
  );
}
