import type { Plugin } from "vite";

export function compressFolder(folder: string): Promise<void>;
export function compressedFiles(): Plugin;
