import type { Plugin } from "vite";

export function findLayer(path: string): string | null;
export function cssLayers(): Plugin;
