import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { Hits } from "@/shared/api/library";
import { MarkedText } from "@/shared/runs/marked-text";
import { type Loadable, Loaded } from "@/shared/ui/loaded";

/** Passages that match a search, best first, below what the search could not do. */
export function HitList({ query }: { query: Loadable<Hits> }) {
  return (
    <section className="hits" aria-label={t`Passages`}>
      <h2 className="label">
        <Trans>Passages</Trans>
      </h2>
      <Loaded query={query} label={t`the passages`}>
        {({ items, notices }) => (
          <>
            {notices?.map((notice) => (
              <p key={notice} className="notice sun" role="status">
                {notice}
              </p>
            ))}
            {items.length === 0 && (
              <p className="quiet">
                <Trans>No passage contains these words.</Trans>
              </p>
            )}
            <ol>
              {items.map((hit) => (
                <li key={`${hit.text_id} ${hit.start}`}>
                  <p dir="auto" className="hit-text">
                    <MarkedText text={hit.text} marks={hit.marks} />
                  </p>
                  <p dir="auto" className="hit-source">
                    {hit.title}
                    {hit.heading && ` · ${hit.heading}`}
                  </p>
                </li>
              ))}
            </ol>
          </>
        )}
      </Loaded>
      <h2 className="label">
        <Trans>Documents</Trans>
      </h2>
    </section>
  );
}
