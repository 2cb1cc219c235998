import { Plural, Trans } from "@lingui/react/macro";
import type { Report } from "@/shared/api/reports";
import { joinParts } from "@/shared/format/lists";
import { Link } from "@/shared/routing/routing";
import { describeFollowUp, listChanges } from "./changes";

/** What a report has to do with the earlier report of its thread, and what changed. */
export function FollowUpNote({ report }: { report: Report }) {
  const followUp = report.follow_up;
  // Where the edit became a version of the earlier report, another note says so and leads there.
  if (!followUp || (report.version_of && followUp.deleted_sources.length === 0)) return null;
  const deleted = joinParts(followUp.deleted_sources);
  const lines = followUp.changes ? listChanges(followUp.changes) : [];
  return (
    <div className="notice report-follow-up">
      <p>
        {describeFollowUp(followUp)}{" "}
        <Link to="/runs/$runId" params={{ runId: followUp.run_id }}>
          <Trans>Earlier report</Trans>
        </Link>
      </p>
      {followUp.unchanged_because && <p>{followUp.unchanged_because}</p>}
      {followUp.deleted_sources.length > 0 && (
        <p>
          <Plural
            value={followUp.deleted_sources.length}
            one={`# document that it cites was deleted since: ${deleted}.`}
            other={`# documents that it cites were deleted since: ${deleted}.`}
          />
        </p>
      )}
      {followUp.changes && (
        <details>
          <summary>
            <Trans>What changed</Trans>
          </summary>
          <ul>
            {lines.map((line, at) => (
              // A report version never changes.
              // biome-ignore lint/suspicious/noArrayIndexKey: see above
              <li key={at} style={line.level ? { marginInlineStart: "1.5rem" } : undefined} dir="auto">
                {line.text}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
