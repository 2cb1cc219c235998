import type { Hits } from "@/shared/api/library";
import { type Loadable, Loaded } from "@/shared/ui/loaded";

/** Passages that match a search, best first, below what the search could not do. */
export function HitList({ query }: { query: Loadable<Hits> }) {
  return (
    <section className="hits" aria-label="Passages">
      <h2 className="label">Passages</h2>
      <Loaded query={query} label="the passages">
        {({ items, notices }) => (
          <>
            {notices?.map((notice) => (
              <p key={notice} className="notice sun" role="status">
                {notice}
              </p>
            ))}
            {items.length === 0 && <p className="quiet">No passage contains these words.</p>}
            <ol>
              {items.map((hit) => (
                <li key={`${hit.text_id} ${hit.start}`}>
                  <p className="hit-text">{hit.text}</p>
                  <p className="hit-source">
                    {hit.title}
                    {hit.heading && ` · ${hit.heading}`}
                  </p>
                </li>
              ))}
            </ol>
          </>
        )}
      </Loaded>
      <h2 className="label">Documents</h2>
    </section>
  );
}
