import { PRESETS } from "./presets";

export function DepthField({ turns, onChange }: { turns: number; onChange(turns: number): void }) {
  const says = PRESETS.find((preset) => preset.turns === turns)?.says ?? "";
  return (
    <fieldset className="depth">
      <legend className="visually-hidden">Depth</legend>
      <div className="depth-choices">
        {PRESETS.map((preset) => (
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
      <span className="depth-says">
        Up to <span className="num">{turns}</span> turns. {says}
      </span>
    </fieldset>
  );
}
