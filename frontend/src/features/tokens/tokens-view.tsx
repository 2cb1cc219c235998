import { useInfiniteQuery } from "@tanstack/react-query";
import type { RunDetail } from "@/shared/api/runs";
import { type Segment, type Trajectory, type Turn, trajectoryQuery } from "@/shared/api/trajectories";
import { counted } from "@/shared/format/numbers";
import { Loaded, More } from "@/shared/ui/loaded";
import { TurnTokens } from "./turn-tokens";
import "./tokens.css";

interface TokensViewProps {
  run: RunDetail;
  active: boolean;
  onPick(seq: number): void;
}

/** The run as a trainer reads it: segments, and in each the turns with their tokens. */
export function TokensView({ run, active, onPick }: TokensViewProps) {
  const pages = useInfiniteQuery(trajectoryQuery(run.id, active));
  return (
    <section className="tokens" aria-label="Tokens">
      <Loaded query={pages} what="the record">
        {(loaded) => <Turns pages={loaded.pages} onPick={onPick} />}
      </Loaded>
      <More query={pages} text="More turns" />
    </section>
  );
}

function Turns({ pages, onPick }: { pages: readonly Trajectory[]; onPick(seq: number): void }) {
  const first = pages[0];
  const turns = pages.flatMap((page) => page.turns);
  return (
    <>
      {first && <Summary record={first} />}
      {turns.some((turn) => turn.tokens) && <Legend />}
      {turns.length === 0 && <p className="quiet">Its first role call appears here once it is answered.</p>}
      <ol>
        {turns.map((turn, nth) => (
          <li key={turn.seq}>
            {begins(turn, turns[nth - 1]) && <SegmentHead segment={segmentOf(first, turn)} turn={turn} />}
            <TurnTokens turn={turn} onPick={onPick} />
          </li>
        ))}
      </ol>
    </>
  );
}

function Legend() {
  return (
    <p className="quiet tokens-legend">
      A token's ground is <span className="tok s2">sun</span> to <span className="tok s4">coral</span> the less likely
      it was; one that is <span className="tok masked">dotted</span> is not trained.
    </p>
  );
}

function begins(turn: Turn, before: Turn | undefined): boolean {
  return before === undefined || before.segment !== turn.segment || before.role !== turn.role;
}

function segmentOf(record: Trajectory | undefined, turn: Turn): Segment | undefined {
  return record?.segments.find((segment) => segment.idx === turn.segment);
}

/** What the run was, for training, and who scored it how. */
function Summary({ record }: { record: Trajectory }) {
  const scores = record.scores.map((score) => `${score.scorer} ${score.value ?? score.failure}`);
  const said = [
    record.outcome?.replace("_", " "),
    record.reward === null ? null : `reward ${record.reward}`,
    record.member === null ? null : `member ${record.member} of its group`,
    counted(record.segments.length, "segment"),
    ...scores,
  ];
  return <p className="quiet num">{said.filter(Boolean).join(" · ")}</p>;
}

function SegmentHead({ segment, turn }: { segment: Segment | undefined; turn: Turn }) {
  if (!segment) return <h3 className="tokens-segment">{turn.role}: no segment</h3>;
  const shared = segment.parent_tokens ? `, ${counted(segment.parent_tokens, "token")} shared with it` : "";
  return (
    <h3 className="tokens-segment">
      Segment <span className="num">{segment.idx}</span>, {segment.role}
      <span className="quiet">
        {" · "}
        {segment.fracture.replaceAll("_", " ")}
        {segment.parent !== null && ` after segment ${segment.parent}${shared}`}
      </span>
    </h3>
  );
}
