import type { JobDetail, TrainingEvent } from "@/shared/api/training";
import { formatAgo, formatCount, pluralize } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { eventText, isDistillation, ledgerReason } from "./training-labels";

/** Number of rollouts by ledger reason. */
export function Ledger({ job }: { job: JobDetail }) {
  const rows = Object.entries(job.ledger).sort(([, a], [, b]) => b - a);
  const all = rows.reduce((sum, [, rolloutCount]) => sum + rolloutCount, 0);
  return (
    <section aria-label="Ledger">
      <h2 className="label">Ledger</h2>
      {rows.length === 0 && (
        <p className="quiet">Each run appears here once, with the reason why it was used or not.</p>
      )}
      <dl className="metrics num">
        {rows.map(([reason, rolloutCount]) => {
          const { label, description } = ledgerReason(reason, isDistillation(job));
          return (
            <div key={reason}>
              <dt>
                {label} <span className="quiet">{description}</span>
              </dt>
              <dd>{formatCount(rolloutCount)}</dd>
            </div>
          );
        })}
      </dl>
      {rows.length > 1 && (
        <p className="quiet num">{pluralize(all, isDistillation(job) ? "run" : "rollout")} in total</p>
      )}
    </section>
  );
}

/** Events of a job, newest first. */
export function Events({ events }: { events: Loadable<{ items: TrainingEvent[] }> }) {
  const now = useNow(30_000);
  return (
    <section aria-label="Events">
      <h2 className="label">Events</h2>
      <Loaded query={events} label="the events">
        {({ items }) => (
          <ol className="events">
            {items.toReversed().map((event) => {
              const { label, tone, text } = eventText(event);
              return (
                <li key={event.id}>
                  <b className={tone}>{label}</b> {text}{" "}
                  <time className="quiet num" dateTime={event.at} title={event.at}>
                    {formatAgo(event.at, now)}
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
