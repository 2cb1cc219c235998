/** A report's citations by the source they stand on. Pure. */

import type { Citation, Report } from "@/shared/api/reports";

export interface CitedSource {
  id: string;
  title: string;
  citations: Citation[];
}

/** In the order in which the report first cites them. */
export function citedSources(report: Report | null): CitedSource[] {
  const found = new Map<string, CitedSource>();
  for (const citation of report?.citations ?? []) {
    const source = found.get(citation.source_id) ?? { id: citation.source_id, title: citation.title, citations: [] };
    source.citations.push(citation);
    found.set(citation.source_id, source);
  }
  return [...found.values()];
}
