import { useState } from "react";
import type { Engine, Graph } from "@/shared/api/catalog";
import { Failure, type Loadable, Loaded } from "@/shared/ui/loaded";
import { usePopover } from "@/shared/ui/popover";
import { type Draft, engineOptions } from "./request";

type Limits = Pick<Draft, "usd" | "minutes" | "graph" | "engine">;

interface LimitsFieldProps {
  settings: Limits;
  graphs: Loadable<Graph[]>;
  engines: Loadable<Engine[]>;
  onChange(part: Partial<Limits>): void;
}

/** Money, time, graph and engine: what most questions leave alone. Every field has its place before its list has come. */
export function LimitsField({ settings, graphs, engines, onChange }: LimitsFieldProps) {
  const [open, setOpen] = useState(false);
  const { box, onKeyDown } = usePopover<HTMLDivElement>(open, () => setOpen(false));
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only closes on the Escape of the fields inside
    <div className="limits" ref={box} onKeyDown={onKeyDown}>
      <button
        type="button"
        className="btn plain"
        aria-expanded={open}
        aria-controls="limits-panel"
        onClick={() => setOpen(!open)}
      >
        Limits and engine
      </button>
      {open && (
        <div id="limits-panel" className="limits-panel">
          <label>
            Spend at most, $
            <input
              className="field num"
              inputMode="decimal"
              value={settings.usd}
              placeholder="no limit"
              onChange={(event) => onChange({ usd: event.target.value })}
            />
          </label>
          <label>
            Work at most, minutes
            <input
              className="field num"
              inputMode="decimal"
              value={settings.minutes}
              placeholder="no limit"
              onChange={(event) => onChange({ minutes: event.target.value })}
            />
          </label>
          <label htmlFor="limits-graph">
            Graph
            <GraphSelect graphs={graphs.data} chosen={settings.graph} onChoose={(graph) => onChange({ graph })} />
          </label>
          <label>
            Answered by
            <input
              className="field"
              list="engine-options"
              autoComplete="off"
              spellCheck={false}
              value={settings.engine}
              placeholder="this installation's default"
              onChange={(event) => onChange({ engine: event.target.value })}
            />
          </label>
          <Failure query={graphs} />
          <div className="limits-notes">
            <Loaded query={engines} what="the engines">
              {(known) => <EngineNotes engines={known} />}
            </Loaded>
          </div>
        </div>
      )}
    </div>
  );
}

interface GraphSelectProps {
  /** `undefined`: the list has not come yet. */
  graphs: readonly Graph[] | undefined;
  chosen: string;
  onChoose(name: string): void;
}

/** The chosen graph stays in the list even where the server does not offer it, so that it can be seen and changed. */
function GraphSelect({ graphs, chosen, onChoose }: GraphSelectProps) {
  const offered = graphs?.some((graph) => graph.name === chosen);
  return (
    <select
      id="limits-graph"
      className="field"
      value={chosen}
      disabled={graphs === undefined}
      onChange={(event) => onChoose(event.target.value)}
    >
      {!offered && (
        <option value={chosen}>
          {chosen}
          {graphs && " (not offered here)"}
        </option>
      )}
      {graphs?.map((graph) => (
        <option key={graph.name} value={graph.name}>
          {graph.title || graph.name}
        </option>
      ))}
    </select>
  );
}

/** What can answer here, and what would be needed for more. */
function EngineNotes({ engines }: { engines: readonly Engine[] }) {
  const shown = engines.filter((engine) => engine.available || engine.offered_at);
  const absent = engines.filter((engine) => !engine.available && !engine.offered_at);
  return (
    <>
      <datalist id="engine-options">
        {engineOptions(engines).map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
      {shown.map((engine) => (
        <p key={engine.name}>
          <b>{engine.name}</b>: {engine.note}
        </p>
      ))}
      {absent.length > 0 && (
        <details>
          <summary>{absent.length} more can be set up</summary>
          {absent.map((engine) => (
            <p key={engine.name}>
              <b>{engine.name}</b>: {engine.note}
            </p>
          ))}
        </details>
      )}
    </>
  );
}
