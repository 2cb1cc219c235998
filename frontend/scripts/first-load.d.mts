import type { Plugin } from "vite";

export interface PageFiles {
  start: string;
  entry: readonly string[];
  scripts: readonly string[];
  styles: readonly string[];
  bundle: string;
  texts: Record<string, { file: string; parts: readonly string[] }>;
}

export function writePage(html: string, files: PageFiles): string;
export function firstLoads(): Plugin;
