/** Files out of a drop or a file field, folders included. */

/** A file and the name it is uploaded under: inside a folder, its path there. */
export interface PickedFile {
  name: string;
  file: File;
}

/** Files and the folder they came in. Empty folder: single files. */
export interface Picked {
  folder: string;
  files: PickedFile[];
}

/** What the library can read; everything else a folder holds is left alone. */
const READABLE = /\.(pdf|html?|xhtml|md|markdown|mdx|rst|txt|text|docx)$/i;

function entriesOf(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

async function walk(entry: FileSystemEntry, path: string, into: PickedFile[]): Promise<void> {
  if (entry.isFile) {
    into.push({ name: path, file: await fileOf(entry as FileSystemFileEntry) });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  // A reader hands out at most a hundred entries a call and an empty list at the end.
  for (let batch = await entriesOf(reader); batch.length > 0; batch = await entriesOf(reader)) {
    for (const child of batch) await walk(child, path ? `${path}/${child.name}` : child.name, into);
  }
}

function readable(files: readonly PickedFile[]): PickedFile[] {
  return files.filter(({ name, file }) => READABLE.test(file.name) && !name.split("/").some((part) => part[0] === "."));
}

/** What a drop holds: one part for each folder, and one for the files beside them. */
export async function readDrop(data: DataTransfer): Promise<Picked[]> {
  // The list of items is emptied as soon as this function waits, so the entries are taken out first.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry != null);
  const loose = [...data.files];
  const folders = entries.filter((entry) => entry.isDirectory);
  if (folders.length === 0) return single(loose);
  const picked: Picked[] = [];
  for (const folder of folders) {
    const files: PickedFile[] = [];
    await walk(folder, "", files);
    picked.push({ folder: folder.name, files: readable(files) });
  }
  const beside: PickedFile[] = [];
  for (const entry of entries) if (entry.isFile) await walk(entry, entry.name, beside);
  return beside.length > 0 ? [...picked, { folder: "", files: beside }] : picked;
}

/** What a file field holds. The browser gives each file of a folder its path, which begins with the folder's name. */
export function readField(list: FileList): Picked[] {
  const files = [...list];
  const paths = files.map((file) => (file.webkitRelativePath || "").split("/"));
  const folders = [...new Set(paths.map((path) => (path.length > 1 ? path[0] : undefined)))];
  return folders.flatMap((folder) => {
    const own = files.filter((_, at) => (folder === undefined ? paths[at]?.length === 1 : paths[at]?.[0] === folder));
    if (folder === undefined) return single(own);
    const inside = own.map((file) => ({ name: file.webkitRelativePath.slice(folder.length + 1), file }));
    return [{ folder, files: readable(inside) }];
  });
}

function single(files: readonly File[]): Picked[] {
  return files.length > 0 ? [{ folder: "", files: files.map((file) => ({ name: file.name, file })) }] : [];
}

/** Groups of files small enough for one request each. */
export function batches(files: readonly PickedFile[], most = 16, mostBytes = 16_000_000): PickedFile[][] {
  const groups: PickedFile[][] = [];
  let size = 0;
  for (const one of files) {
    const group = groups.at(-1);
    if (!group || group.length >= most || size + one.file.size > mostBytes) {
      groups.push([one]);
      size = one.file.size;
    } else {
      group.push(one);
      size += one.file.size;
    }
  }
  return groups;
}
