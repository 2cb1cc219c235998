/** Citations of a report grouped by source. Pure. */

import type { Citation, Report } from "@/shared/api/reports";

export interface CitedSource {
  /** Short id, such as S1. */
  label: string;
  id: string;
  title: string;
  /** What is known about the source besides its title, in words. */
  description: string;
  citations: Citation[];
}

/** Return the sources in the order in which the report first cites them. */
export function groupBySource(report: Report | null): CitedSource[] {
  const citations = new Map(report?.citations.map((citation) => [citation.number, citation]));
  return (report?.sources ?? []).map((source) => ({
    label: source.id,
    id: source.source_id,
    title: source.title,
    description: source.description,
    citations: source.citations.flatMap((number) => citations.get(number) ?? []),
  }));
}
