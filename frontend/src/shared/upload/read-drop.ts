/** Files out of a drop or a file field, folders included. */

/** Files and the folder they came in. Empty folder: loose files. */
export interface Picked {
  folder: string;
  files: File[];
}

/** What the library can read; everything else a folder holds is left alone. */
const READABLE = /\.(pdf|html?|xhtml|md|markdown|mdx|rst|txt|text|docx)$/i;

function entriesOf(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

async function walk(entry: FileSystemEntry, into: File[]): Promise<void> {
  if (entry.isFile) {
    into.push(await fileOf(entry as FileSystemFileEntry));
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  // A reader hands out at most a hundred entries a call and an empty list at the end.
  for (let batch = await entriesOf(reader); batch.length > 0; batch = await entriesOf(reader)) {
    for (const child of batch) await walk(child, into);
  }
}

function readable(files: readonly File[]): File[] {
  return files.filter((file) => READABLE.test(file.name) && !file.name.startsWith("."));
}

export async function readDrop(data: DataTransfer): Promise<Picked> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry != null);
  const folder = entries.find((entry) => entry.isDirectory);
  if (!folder) return { folder: "", files: [...data.files] };
  const files: File[] = [];
  for (const entry of entries) await walk(entry, files);
  return { folder: folder.name, files: readable(files) };
}

export function readField(list: FileList): Picked {
  const files = [...list];
  const folder = (files[0]?.webkitRelativePath ?? "").split("/")[0] ?? "";
  return { folder, files: folder ? readable(files) : files };
}

/** Groups of files small enough for one request each. */
export function batches(files: readonly File[], most = 16, mostBytes = 16_000_000): File[][] {
  const groups: File[][] = [];
  let size = 0;
  for (const file of files) {
    const group = groups.at(-1);
    if (!group || group.length >= most || size + file.size > mostBytes) {
      groups.push([file]);
      size = file.size;
    } else {
      group.push(file);
      size += file.size;
    }
  }
  return groups;
}
