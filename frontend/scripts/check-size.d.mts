export interface ManifestChunk {
  file: string;
  css?: string[];
  imports?: string[];
  isEntry?: boolean;
  isDynamicEntry?: boolean;
}

interface Size {
  name: string;
  bytes: number;
}

export function measure(
  manifest: Record<string, ManifestChunk>,
  sizeOf: (file: string) => number,
  texts?: Record<string, Record<string, string>>,
): { routes: Size[]; chunks: Size[]; problems: string[] };
