// A Vite plugin that stores the files of a build also compressed, because the API sends files as they are stored.
import { readdirSync, statSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";

const TEXT = /\.(js|css|html|svg|json|txt)$/;
/** A smaller file fits into one packet anyway. */
const MIN_BYTES = 1_000;

/** The suffixes of the compressed files. `offing.api.web_ui` knows them, too. */
const CODINGS = { ".br": promisify(brotliCompress), ".gz": (data) => promisify(gzip)(data, { level: 9 }) };

/** Store each text file of a folder compressed with brotli and with gzip beside it, if that makes it smaller. */
export async function compressFolder(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && TEXT.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.includes("/.vite/") && statSync(path).size >= MIN_BYTES);
  await Promise.all(
    files.map(async (path) => {
      const content = await readFile(path);
      for (const [suffix, compress] of Object.entries(CODINGS)) {
        const compressed = await compress(content);
        if (compressed.length < content.length) await writeFile(path + suffix, compressed);
      }
    }),
  );
}

/** Compress the files of a build when all of them are written. */
export function compressedFiles() {
  let folder = "";
  return {
    name: "offing-compressed-files",
    apply: "build",
    enforce: "post",
    configResolved(config) {
      folder = config.build.write ? join(config.root, config.build.outDir) : "";
    },
    async closeBundle() {
      if (folder) await compressFolder(folder);
    },
  };
}
