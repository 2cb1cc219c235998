export const CHUNKS: { name: string; test: RegExp; priority: number }[];
