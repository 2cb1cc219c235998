/** Citations of a report grouped by source. Pure. */

import type { Citation, Report } from "@/shared/api/reports";

export interface CitedSource {
  id: string;
  title: string;
  citations: Citation[];
}

/** Return the sources in the order in which the report first cites them. */
export function groupBySource(report: Report | null): CitedSource[] {
  const sources = new Map<string, CitedSource>();
  for (const citation of report?.citations ?? []) {
    const source = sources.get(citation.source_id) ?? { id: citation.source_id, title: citation.title, citations: [] };
    source.citations.push(citation);
    sources.set(citation.source_id, source);
  }
  return [...sources.values()];
}
