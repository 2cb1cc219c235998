import { useState } from "react";
import type { Engine, Graph } from "@/shared/api/catalog";
import { type Draft, engineOptions } from "./request";

type Limits = Pick<Draft, "usd" | "minutes" | "graph" | "engine">;

interface LimitsFieldProps {
  settings: Limits;
  graphs: readonly Graph[];
  engines: readonly Engine[];
  onChange(part: Partial<Limits>): void;
}

/** Money, time, graph and engine: what most questions leave alone. */
export function LimitsField({ settings, graphs, engines, onChange }: LimitsFieldProps) {
  const [open, setOpen] = useState(false);
  return (
    <div className="limits">
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
          {graphs.length > 1 && (
            <label>
              Graph
              <select
                className="field"
                value={settings.graph}
                onChange={(event) => onChange({ graph: event.target.value })}
              >
                {graphs.map((graph) => (
                  <option key={graph.name} value={graph.name}>
                    {graph.title || graph.name}
                  </option>
                ))}
              </select>
            </label>
          )}
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
            <datalist id="engine-options">
              {engineOptions(engines).map((option) => (
                <option key={option} value={option} />
              ))}
            </datalist>
          </label>
          <EngineNotes engines={engines} />
        </div>
      )}
    </div>
  );
}

/** What can answer here, and what would be needed for more. */
function EngineNotes({ engines }: { engines: readonly Engine[] }) {
  const absent = engines.filter((engine) => !engine.available);
  return (
    <div className="limits-notes">
      {engines
        .filter((engine) => engine.available)
        .map((engine) => (
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
    </div>
  );
}
