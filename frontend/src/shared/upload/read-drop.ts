/** Reads files from a drop or a file input, including folders. */

/** A file and the name under which it is uploaded: inside a folder, its path in that folder. */
export interface PickedFile {
  name: string;
  file: File;
}

/** Files and the folder that contains them. An empty folder means single files. */
export interface PickedFolder {
  folder: string;
  files: PickedFile[];
}

/** Formats that the library can read. Other files of a folder are skipped. */
const READABLE_EXTENSIONS = /\.(pdf|html?|xhtml|md|markdown|mdx|rst|txt|text|docx)$/i;

function readEntries(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

function readFile(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

async function collectFiles(entry: FileSystemEntry, path: string, files: PickedFile[]): Promise<void> {
  if (entry.isFile) {
    files.push({ name: path, file: await readFile(entry as FileSystemFileEntry) });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  // A reader returns at most a hundred entries per call, and an empty list at the end.
  for (let entries = await readEntries(reader); entries.length > 0; entries = await readEntries(reader)) {
    for (const child of entries) await collectFiles(child, path ? `${path}/${child.name}` : child.name, files);
  }
}

function filterReadable(files: readonly PickedFile[]): PickedFile[] {
  return files.filter(
    ({ name, file }) => READABLE_EXTENSIONS.test(file.name) && !name.split("/").some((part) => part[0] === "."),
  );
}

/** Return the contents of a drop: one entry for each folder, and one for the files beside them. */
export async function readDrop(data: DataTransfer): Promise<PickedFolder[]> {
  // The list of items is emptied as soon as this function awaits, so the entries are read first.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry != null);
  const dropped = [...data.files];
  const folders = entries.filter((entry) => entry.isDirectory);
  if (folders.length === 0) return singleFiles(dropped);
  const groups: PickedFolder[] = [];
  for (const folder of folders) {
    const files: PickedFile[] = [];
    await collectFiles(folder, "", files);
    groups.push({ folder: folder.name, files: filterReadable(files) });
  }
  const topLevel: PickedFile[] = [];
  for (const entry of entries) if (entry.isFile) await collectFiles(entry, entry.name, topLevel);
  return topLevel.length > 0 ? [...groups, { folder: "", files: topLevel }] : groups;
}

/**
 * Return the contents of a file input. The browser gives each file of a folder its path, which starts with the folder's
 * name.
 */
export function readField(list: FileList): PickedFolder[] {
  const files = [...list];
  const paths = files.map((file) => (file.webkitRelativePath || "").split("/"));
  const folders = [...new Set(paths.map((path) => (path.length > 1 ? path[0] : undefined)))];
  return folders.flatMap((folder) => {
    const inFolder = files.filter((_, at) =>
      folder === undefined ? paths[at]?.length === 1 : paths[at]?.[0] === folder,
    );
    if (folder === undefined) return singleFiles(inFolder);
    const inside = inFolder.map((file) => ({ name: file.webkitRelativePath.slice(folder.length + 1), file }));
    return [{ folder, files: filterReadable(inside) }];
  });
}

function singleFiles(files: readonly File[]): PickedFolder[] {
  return files.length > 0 ? [{ folder: "", files: files.map((file) => ({ name: file.name, file })) }] : [];
}

/** Split files into chunks small enough for one request each. */
export function splitIntoChunks(files: readonly PickedFile[], maxFiles = 16, maxBytes = 16_000_000): PickedFile[][] {
  const chunks: PickedFile[][] = [];
  let size = 0;
  for (const one of files) {
    const chunk = chunks.at(-1);
    if (!chunk || chunk.length >= maxFiles || size + one.file.size > maxBytes) {
      chunks.push([one]);
      size = one.file.size;
    } else {
      chunk.push(one);
      size += one.file.size;
    }
  }
  return chunks;
}
