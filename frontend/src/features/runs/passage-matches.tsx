import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { passagesQuery } from "@/shared/api/library";
import { Link } from "@/shared/routing/routing";
import { MarkedText } from "@/shared/runs/marked-text";
import { Loaded } from "@/shared/ui/loaded";
import styles from "./runs.module.css";

/** Number of passages that are shown beside runs. */
const MAX_PASSAGES = 5;

/** The best passages of documents for a search. */
export function PassageMatches({ search }: { search: string }) {
  const hits = useQuery(passagesQuery(null, search));
  return (
    <section aria-label={t`Passages in documents`} className={styles.group}>
      <h2 className={styles.groupName}>
        <Trans>Passages in documents</Trans>
      </h2>
      <Loaded
        query={hits}
        label={t`the passages`}
        empty={({ items }) =>
          items.length === 0 ? (
            <p className="quiet">
              <Trans>No passage of a document contains these words.</Trans>
            </p>
          ) : null
        }
      >
        {({ items, notices }) => (
          <>
            {notices?.map((notice) => (
              <p key={notice} className="notice sun" role="status">
                {notice}
              </p>
            ))}
            <ol className={styles.passages}>
              {items.slice(0, MAX_PASSAGES).map((hit) => (
                <li key={`${hit.text_id} ${hit.start}`}>
                  <Link to="/library" search={{ source: hit.source_id, q: search }} dir="auto">
                    {hit.title}
                  </Link>
                  {hit.heading && hit.heading !== hit.title && (
                    <span dir="auto" className="quiet">
                      {" "}
                      {hit.heading}
                    </span>
                  )}
                  <p dir="auto" className={styles.passage}>
                    <MarkedText text={hit.text} marks={hit.marks} />
                  </p>
                </li>
              ))}
            </ol>
            {items.length > MAX_PASSAGES && (
              <Link to="/library" search={{ q: search }} className="btn small">
                <Trans>Show all passages</Trans>
              </Link>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}
