import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { RunDetail } from "@/shared/api/runs";
import { type RoleCall, type Segment, type Trajectory, trajectoryQuery } from "@/shared/api/trajectories";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import { RoleCallTokens } from "./role-call-tokens";
import "./tokens.css";

interface TokensViewProps {
  run: RunDetail;
  active: boolean;
  onPick(seq: number): void;
}

/** The trajectory of the run: segments with their role calls and tokens. */
export function TokensView({ run, active, onPick }: TokensViewProps) {
  const pages = useInfiniteQuery(trajectoryQuery(run.id, active));
  return (
    <section className="tokens" aria-label={t`Tokens`}>
      <Loaded query={pages} label={t`the trajectory`}>
        {(loaded) => <RoleCalls pages={loaded.pages} onPick={onPick} />}
      </Loaded>
      <LoadMore query={pages} text={t`More role calls`} />
    </section>
  );
}

function RoleCalls({ pages, onPick }: { pages: readonly Trajectory[]; onPick(seq: number): void }) {
  const first = pages[0];
  const calls = pages.flatMap((page) => page.role_calls);
  return (
    <>
      {first && <TrajectorySummary trajectory={first} />}
      {calls.some((call) => call.tokens) && <Legend />}
      {calls.length === 0 && (
        <p className="quiet">
          <Trans>The first role call appears here when it completes.</Trans>
        </p>
      )}
      <ol>
        {calls.map((turn, nth) => (
          <li key={turn.seq}>
            {isSegmentStart(turn, calls[nth - 1]) && <SegmentHead segment={findSegment(first, turn)} call={turn} />}
            <RoleCallTokens call={turn} onPick={onPick} />
          </li>
        ))}
      </ol>
    </>
  );
}

function Legend() {
  return (
    <p className="quiet tokens-legend">
      <Trans>
        The less likely a token was, the stronger its background, from <span className="tok s2">yellow</span> to{" "}
        <span className="tok s4">red</span>. <span className="tok masked">Dotted</span> tokens are not trained.
      </Trans>
    </p>
  );
}

function isSegmentStart(call: RoleCall, previous: RoleCall | undefined): boolean {
  return previous === undefined || previous.segment !== call.segment || previous.role !== call.role;
}

function findSegment(trajectory: Trajectory | undefined, call: RoleCall): Segment | undefined {
  return trajectory?.segments.find((segment) => segment.index === call.segment);
}

/** Outcome, reward and scores of the trajectory. */
function TrajectorySummary({ trajectory }: { trajectory: Trajectory }) {
  const scores = trajectory.scores.map((score) => `${score.scorer} ${score.value ?? score.failure}`);
  const parts = [
    trajectory.outcome?.replace("_", " "),
    trajectory.reward === null ? null : t`reward ${trajectory.reward}`,
    trajectory.member === null ? null : t`rollout ${trajectory.member} of its group`,
    plural(trajectory.segments.length, { one: "# segment", other: "# segments" }),
    ...scores,
  ];
  return <p className="quiet num">{parts.filter(Boolean).join(" · ")}</p>;
}

function SegmentHead({ segment, call }: { segment: Segment | undefined; call: RoleCall }) {
  if (!segment)
    return (
      <h3 className="tokens-segment">
        <Trans>{call.role}: no segment</Trans>
      </h3>
    );
  const shared = segment.shared_tokens
    ? t`, ${plural(segment.shared_tokens, { one: "# token", other: "# tokens" })} shared with it`
    : "";
  return (
    <h3 className="tokens-segment">
      <Trans>
        Segment <span className="num">{segment.index}</span>, {segment.role}
      </Trans>
      <span className="quiet">
        {" · "}
        {segment.boundary_reason.replaceAll("_", " ")}
        {segment.parent_index !== null && t` after segment ${segment.parent_index}${shared}`}
      </span>
    </h3>
  );
}
