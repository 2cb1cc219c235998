import { TURN_PRESETS } from "./presets";

export function TurnBudgetField({ turns, onChange }: { turns: number; onChange(turns: number): void }) {
  const description = TURN_PRESETS.find((preset) => preset.turns === turns)?.description ?? "";
  return (
    <fieldset className="turn-budget">
      <legend className="visually-hidden">Turn budget</legend>
      <div className="turn-budget-choices">
        {TURN_PRESETS.map((preset) => (
          <label key={preset.name} className={preset.turns === turns ? "on" : ""}>
            <input
              type="radio"
              name="depth"
              className="visually-hidden"
              checked={preset.turns === turns}
              onChange={() => onChange(preset.turns)}
            />
            {preset.name}
          </label>
        ))}
      </div>
      <span className="turn-budget-description">
        Up to <span className="num">{turns}</span> turns. {description}
      </span>
    </fieldset>
  );
}
