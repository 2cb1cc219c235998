import type { JobDetail, TrainingEvent } from "@/shared/api/training";
import { ago, count, counted } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { eventWords, learns, reasonWords } from "./training-words";

/** What became of the runs that a job looked at. */
export function Ledger({ job }: { job: JobDetail }) {
  const rows = Object.entries(job.ledger).sort(([, a], [, b]) => b - a);
  const all = rows.reduce((sum, [, held]) => sum + held, 0);
  return (
    <section aria-label="Ledger">
      <h2 className="label">Ledger</h2>
      {rows.length === 0 && <p className="quiet">Each run is noted here once, with what was decided about it.</p>}
      <dl className="figures num">
        {rows.map(([reason, held]) => {
          const { word, why } = reasonWords(reason, learns(job));
          return (
            <div key={reason}>
              <dt>
                {word} <span className="quiet">{why}</span>
              </dt>
              <dd>{count(held)}</dd>
            </div>
          );
        })}
      </dl>
      {rows.length > 1 && <p className="quiet num">{counted(all, learns(job) ? "run" : "rollout")} in all</p>}
    </section>
  );
}

/** What was decided about a job, the newest first. */
export function Events({ events }: { events: Loadable<{ items: TrainingEvent[] }> }) {
  const now = useNow(30_000);
  return (
    <section aria-label="Events">
      <h2 className="label">Decisions</h2>
      <Loaded query={events} what="the decisions">
        {({ items }) => (
          <ol className="events">
            {items.toReversed().map((event) => {
              const { word, tone, text } = eventWords(event);
              return (
                <li key={event.id}>
                  <b className={tone}>{word}</b> {text}{" "}
                  <time className="quiet num" dateTime={event.at} title={event.at}>
                    {ago(event.at, now)}
                  </time>
                </li>
              );
            })}
          </ol>
        )}
      </Loaded>
    </section>
  );
}
