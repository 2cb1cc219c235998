import type { Hit } from "@/shared/api/library";
import { ProblemNote } from "@/shared/ui/problem-note";

/** Passages that answer to a search, best first. */
export function HitList({ hits, error }: { hits: readonly Hit[] | undefined; error: unknown }) {
  return (
    <section className="hits" aria-label="Passages">
      <h2 className="label">Passages</h2>
      <ProblemNote error={error} />
      {hits?.length === 0 && <p className="quiet">No passage holds these words.</p>}
      <ol>
        {hits?.map((hit) => (
          <li key={`${hit.artefact_id} ${hit.start}`}>
            <p className="hit-text">{hit.text}</p>
            <p className="hit-source">
              {hit.title}
              {hit.heading && ` · ${hit.heading}`}
            </p>
          </li>
        ))}
      </ol>
      <h2 className="label">Documents</h2>
    </section>
  );
}
