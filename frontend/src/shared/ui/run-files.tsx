import { t } from "@lingui/core/macro";
import { fileUrl, type RunFile } from "@/shared/api/files";
import { formatBytes } from "@/shared/format/numbers";
import "./run-files.css";

interface RunFilesProps {
  runId: string;
  files: readonly RunFile[];
}

/** Files written by code: images are shown, and each file can be downloaded. */
export function RunFiles({ runId, files }: RunFilesProps) {
  if (files.length === 0) return null;
  return (
    <ul className="run-files" aria-label={t`Files`}>
      {files.map((file) => (
        <li key={`${file.sha256} ${file.name}`}>
          {file.is_image && <img src={fileUrl(runId, file.sha256)} alt={file.name} loading="lazy" />}
          <a dir="auto" href={fileUrl(runId, file.sha256)} download={file.name}>
            {file.name}
          </a>{" "}
          <span className="quiet num">{formatBytes(file.size_bytes)}</span>
        </li>
      ))}
    </ul>
  );
}
