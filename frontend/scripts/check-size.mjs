// Fail if the entry chunk with its static imports exceeds 150 KB gzip, or a lazy chunk exceeds 80 KB.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));
const size = (file) => gzipSync(readFileSync(new URL(file, dist))).length;
const reach = (key, seen = new Set()) => {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) reach(next, seen);
  return seen;
};
const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const first = reach(entry);
const total = [...first].reduce((sum, key) => sum + size(manifest[key].file), 0);
const lazy = Object.keys(manifest).filter((key) => !first.has(key) && manifest[key].file.endsWith(".js"));
const fat = lazy.filter((key) => size(manifest[key].file) > 80_000);
console.log(`entry ${(total / 1000).toFixed(1)} KB gzip of 150; ${lazy.length} lazy chunks, ${fat.length} over 80 KB`);
process.exit(total > 150_000 || fat.length > 0 ? 1 : 0);
