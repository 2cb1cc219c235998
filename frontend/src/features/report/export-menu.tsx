import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { EXPORT_FORMATS, type ExportFormat, exportReport } from "@/shared/api/reports";
import { formatDuration } from "@/shared/format/numbers";
import { classNames } from "@/shared/ui/class-names";
import { useNow } from "@/shared/ui/hooks";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./export-menu.module.css";

const FORMATS: Record<ExportFormat, { name: string; description: MessageDescriptor }> = {
  md: { name: "Markdown", description: msg`to read and edit` },
  html: { name: "HTML", description: msg`one file that opens anywhere` },
  pdf: { name: "PDF", description: msg`for print, with fonts and page numbers` },
  docx: { name: "DOCX", description: msg`for a word processor` },
  bib: { name: "BibTeX", description: msg`the cited sources, for LaTeX` },
  ris: { name: "RIS", description: msg`the cited sources, for reference managers` },
  json: { name: "JSON", description: msg`with all quotes and source spans` },
};

interface ExportMenuProps {
  runId: string;
  /** Version that is exported. */
  version: number;
  primary?: boolean;
  small?: boolean;
}

/** Writes a version of a report as a file. A file that takes long can be cancelled; a failure says what to do. */
export function ExportMenu({ runId, version, primary = false, small = false }: ExportMenuProps) {
  const stop = useRef<AbortController | null>(null);
  const exporting = useMutation({
    mutationFn: async (format: ExportFormat) => {
      stop.current = new AbortController();
      const { file, name } = await exportReport(runId, format, version, stop.current.signal);
      saveFile(file, name);
    },
  });
  const isCancelled = exporting.error instanceof DOMException && exporting.error.name === "AbortError";
  return (
    <span className={styles.menu}>
      <Menu
        label={t`Export`}
        className={classNames("btn", primary && "primary", small && "small")}
        items={EXPORT_FORMATS.map((format) => ({
          name: FORMATS[format].name,
          description: i18n._(FORMATS[format].description),
          onAction: () => exporting.mutate(format),
        }))}
      />
      {exporting.isPending && (
        <Progress name={FORMATS[exporting.variables].name} onCancel={() => stop.current?.abort()} />
      )}
      {exporting.error && !isCancelled && (
        <div className={styles.state}>
          <ProblemNote error={exporting.error} onRetry={() => exporting.mutate(exporting.variables)} />
          <button type="button" className="btn small" onClick={() => exporting.reset()}>
            <Trans>Close</Trans>
          </button>
        </div>
      )}
    </span>
  );
}

function Progress({ name, onCancel }: { name: string; onCancel(): void }) {
  const now = useNow(1_000);
  const [startedAt] = useState(now);
  const seconds = (now - startedAt) / 1000;
  return (
    <div className={styles.state} role="status">
      <p>
        <Trans>The server writes the {name} file…</Trans>
        {seconds >= 1 && <span className="num"> {formatDuration(seconds)}</span>}
      </p>
      <button type="button" className="btn small" onClick={onCancel}>
        <Trans>Cancel</Trans>
      </button>
    </div>
  );
}

/** Have the browser save a file. */
function saveFile(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
