import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { type Engine, type Graph, listEngineOptions } from "@/shared/api/installation";
import { useDismissable } from "@/shared/ui/dismissable";
import { Failure, type Loadable, Loaded } from "@/shared/ui/loaded";
import type { QuestionDraft } from "./request";

type BudgetSettings = Pick<QuestionDraft, "usd" | "minutes" | "graph" | "engine">;

interface BudgetFieldProps {
  settings: BudgetSettings;
  graphs: Loadable<Graph[]>;
  engines: Loadable<Engine[]>;
  onChange(part: Partial<BudgetSettings>): void;
}

/** Cost and time limits, graph and engine. Every field has its position before its list is loaded. */
export function BudgetField({ settings, graphs, engines, onChange }: BudgetFieldProps) {
  const [open, setOpen] = useState(false);
  const { box, onKeyDown } = useDismissable<HTMLDivElement>(open, () => setOpen(false));
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only closes on the Escape of the fields inside
    <div className="budget" ref={box} onKeyDown={onKeyDown}>
      <button
        type="button"
        className="btn plain"
        aria-expanded={open}
        aria-controls="budget-panel"
        onClick={() => setOpen(!open)}
      >
        <Trans>Budget and engine</Trans>
      </button>
      {open && (
        <div id="budget-panel" className="budget-panel">
          <label>
            <Trans>Maximum cost, $</Trans>
            <input
              className="field num"
              inputMode="decimal"
              value={settings.usd}
              placeholder={t`no limit`}
              onChange={(event) => onChange({ usd: event.target.value })}
            />
          </label>
          <label>
            <Trans>Maximum time, minutes</Trans>
            <input
              className="field num"
              inputMode="decimal"
              value={settings.minutes}
              placeholder={t`no limit`}
              onChange={(event) => onChange({ minutes: event.target.value })}
            />
          </label>
          <label htmlFor="budget-graph">
            <Trans>Graph</Trans>
            <GraphSelect graphs={graphs.data} selected={settings.graph} onSelect={(graph) => onChange({ graph })} />
          </label>
          <label>
            <Trans>Engine</Trans>
            <input
              className="field"
              list="engine-options"
              autoComplete="off"
              spellCheck={false}
              value={settings.engine}
              placeholder={t`default of this installation`}
              onChange={(event) => onChange({ engine: event.target.value })}
            />
          </label>
          <Failure query={graphs} />
          <div className="budget-notes">
            <Loaded query={engines} label={t`the engines`}>
              {(loaded) => <EngineNotes engines={loaded} />}
            </Loaded>
          </div>
        </div>
      )}
    </div>
  );
}

interface GraphSelectProps {
  /** `undefined` means that the list is not loaded yet. */
  graphs: readonly Graph[] | undefined;
  selected: string;
  onSelect(name: string): void;
}

/** The selected graph stays in the list even if the server does not offer it, so that it can be seen and changed. */
function GraphSelect({ graphs, selected, onSelect }: GraphSelectProps) {
  const isOffered = graphs?.some((graph) => graph.name === selected);
  return (
    <select
      id="budget-graph"
      className="field"
      value={selected}
      disabled={graphs === undefined}
      onChange={(event) => onSelect(event.target.value)}
    >
      {!isOffered && (
        <option value={selected}>
          {selected}
          {graphs && t` (not available)`}
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

/** Notes on the engines that can be used, and on those that can be set up. */
function EngineNotes({ engines }: { engines: readonly Engine[] }) {
  const usable = engines.filter((engine) => engine.available || engine.offered_at);
  const unavailable = engines.filter((engine) => !engine.available && !engine.offered_at);
  return (
    <>
      <datalist id="engine-options">
        {listEngineOptions(engines).map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
      {usable.map((engine) => (
        <p key={engine.name}>
          <b>{engine.name}</b>: {engine.note}
        </p>
      ))}
      {unavailable.length > 0 && (
        <details>
          <summary>
            <Trans>{unavailable.length} more can be set up</Trans>
          </summary>
          {unavailable.map((engine) => (
            <p key={engine.name}>
              <b>{engine.name}</b>: {engine.note}
            </p>
          ))}
        </details>
      )}
    </>
  );
}
