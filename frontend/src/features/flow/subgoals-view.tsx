import { useQuery } from "@tanstack/react-query";
import { wholeStepsQuery } from "@/shared/api/flow";
import type { RunDetail } from "@/shared/api/runs";
import { counted } from "@/shared/format/numbers";
import { Loaded } from "@/shared/ui/loaded";
import { type Band, bandsOf } from "./subgoal-bands";

interface SubgoalsViewProps {
  run: RunDetail;
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** The run's subgoals as bands over its turns, one under the other. */
export function SubgoalsView({ run, last, active, onPick }: SubgoalsViewProps) {
  const steps = useQuery(wholeStepsQuery(run.id, ["memory"], last, active));
  return (
    <section className="flow" aria-label="Subgoals">
      <Loaded
        query={steps}
        what="the subgoals"
        empty={(known) =>
          bandsOf(known).length === 0 ? (
            <p className="quiet">Its first subgoal appears here after its first turn.</p>
          ) : null
        }
      >
        {(known) => <Bands bands={bandsOf(known)} onPick={onPick} />}
      </Loaded>
    </section>
  );
}

function Bands({ bands, onPick }: { bands: readonly Band[]; onPick(seq: number): void }) {
  return (
    <>
      <div className="band-strip" aria-hidden="true">
        {bands.map((band) => (
          <span key={band.number} style={{ flexGrow: band.turns.length }} title={band.subgoal} />
        ))}
      </div>
      <ol className="flow-list">
        {bands.map((band) => (
          <li key={band.number} className="band">
            <h3>
              <span className="mono quiet">{band.number}</span> {band.subgoal || "No subgoal"}
              <span className="num quiet"> {counted(band.turns.length, "turn")}</span>
            </h3>
            <ol>
              {band.turns.map((turn) => (
                <li key={turn.seq}>
                  <button type="button" onClick={() => onPick(turn.seq)}>
                    <span className="num quiet">{turn.turn}</span>
                    <span className="mono">{turn.tool}</span>
                    <span className={turn.ok ? "band-found" : "band-found failed"}>
                      {turn.finding}
                      {turn.drifted && <em> (kept its subgoal, but wrote another)</em>}
                    </span>
                  </button>
                </li>
              ))}
            </ol>
          </li>
        ))}
      </ol>
    </>
  );
}
