import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import type { RunDetail } from "@/shared/api/runs";
import { stepsWithPayloadQuery } from "@/shared/api/step-payloads";
import { Loaded } from "@/shared/ui/loaded";
import { buildBands, type SubgoalBand } from "./subgoal-bands";

interface SubgoalsViewProps {
  run: RunDetail;
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** Subgoals of the run as bands over its turns. */
export function SubgoalsView({ run, last, active, onPick }: SubgoalsViewProps) {
  const steps = useQuery(stepsWithPayloadQuery(run.id, ["memory"], last, active));
  return (
    <section className="graph-state" aria-label={t`Subgoals`}>
      <h2 className="label">
        <Trans>Subgoals</Trans>
      </h2>
      <Loaded
        query={steps}
        label={t`the subgoals`}
        empty={(loaded) =>
          buildBands(loaded).length === 0 ? (
            <p className="quiet">
              <Trans>The first subgoal appears after the first turn.</Trans>
            </p>
          ) : null
        }
      >
        {(loaded) => <Bands bands={buildBands(loaded)} onPick={onPick} />}
      </Loaded>
    </section>
  );
}

function Bands({ bands, onPick }: { bands: readonly SubgoalBand[]; onPick(seq: number): void }) {
  return (
    <>
      <div className="band-strip" aria-hidden="true">
        {bands.map((band) => (
          <span key={band.number} style={{ flexGrow: band.turns.length }} title={band.subgoal} />
        ))}
      </div>
      <ol className="graph-state-list">
        {bands.map((band) => (
          <li key={band.number} className="band">
            <h3 dir="auto">
              <span className="mono quiet">{band.number}</span> {band.subgoal || t`No subgoal`}
              <span className="num quiet"> {plural(band.turns.length, { one: "# turn", other: "# turns" })}</span>
            </h3>
            <ol>
              {band.turns.map((turn) => (
                <li key={turn.seq}>
                  <button type="button" onClick={() => onPick(turn.seq)}>
                    <span className="num quiet">{turn.turn}</span>
                    <span className="mono">{turn.tool}</span>
                    <span dir="auto" className={turn.ok ? "band-finding" : "band-finding failed"}>
                      {turn.finding}
                      {turn.drifted && (
                        <em>
                          {" "}
                          <Trans>(kept its subgoal but wrote a different one)</Trans>
                        </em>
                      )}
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
