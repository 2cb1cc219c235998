import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import type { JobDetail, TrainingEvent } from "@/shared/api/training";
import { formatAgo, formatCount } from "@/shared/format/numbers";
import { useNow } from "@/shared/ui/hooks";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { eventText, isDistillation, ledgerReason } from "./training-labels";

/** Number of rollouts by ledger reason. */
export function Ledger({ job }: { job: JobDetail }) {
  const rows = Object.entries(job.ledger).sort(([, a], [, b]) => b - a);
  const all = rows.reduce((sum, [, rolloutCount]) => sum + rolloutCount, 0);
  return (
    <section aria-label={t`Ledger`}>
      <h2 className="label">
        <Trans>Ledger</Trans>
      </h2>
      {rows.length === 0 && (
        <p className="quiet">
          <Trans>Each run appears here once, with the reason why it was used or not.</Trans>
        </p>
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
        <p className="quiet num">
          {isDistillation(job) ? (
            <Plural value={all} one="# run in total" other="# runs in total" />
          ) : (
            <Plural value={all} one="# rollout in total" other="# rollouts in total" />
          )}
        </p>
      )}
    </section>
  );
}

/** Events of a job, newest first. */
export function Events({ events }: { events: Loadable<{ items: TrainingEvent[] }> }) {
  const now = useNow(30_000);
  return (
    <section aria-label={t`Events`}>
      <h2 className="label">
        <Trans>Events</Trans>
      </h2>
      <Loaded query={events} label={t`the events`}>
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
