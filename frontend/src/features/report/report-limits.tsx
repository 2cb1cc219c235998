import { Trans } from "@lingui/react/macro";

/** What a report could not establish, below its sections. Empty means that nothing is said. */
export function ReportLimits({ text }: { text: string }) {
  if (!text) return null;
  return (
    <section>
      <h3>
        <Trans context="of a report">Limits</Trans>
      </h3>
      <p dir="auto">{text}</p>
    </section>
  );
}
