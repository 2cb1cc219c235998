import { fileAddress, type RunFile } from "@/shared/api/files";
import { bytes } from "@/shared/format/numbers";
import "./run-files.css";

interface RunFilesProps {
  run: string;
  files: readonly RunFile[];
}

/** Files that code wrote: pictures drawn, each of them to be downloaded. */
export function RunFiles({ run, files }: RunFilesProps) {
  if (files.length === 0) return null;
  return (
    <ul className="run-files" aria-label="Files">
      {files.map((file) => (
        <li key={`${file.sha256} ${file.name}`}>
          {file.picture && <img src={fileAddress(run, file.sha256)} alt={file.name} loading="lazy" />}
          <a href={fileAddress(run, file.sha256)} download={file.name}>
            {file.name}
          </a>{" "}
          <span className="quiet num">{bytes(file.bytes)}</span>
        </li>
      ))}
    </ul>
  );
}
