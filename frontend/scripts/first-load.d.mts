import type { Plugin } from "vite";
import type { ManifestChunk } from "./check-size.mjs";

export function writePage(
  html: string,
  start: string,
  manifest: Record<string, ManifestChunk>,
  texts: Record<string, Record<string, string>>,
  modules: readonly string[],
): string;
export function firstLoads(): Plugin;
