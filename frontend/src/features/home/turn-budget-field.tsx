import { i18n } from "@lingui/core";
import { Trans } from "@lingui/react/macro";
import { TURN_PRESETS } from "./presets";

export function TurnBudgetField({ turns, onChange }: { turns: number; onChange(turns: number): void }) {
  const description = TURN_PRESETS.find((one) => one.turns === turns)?.description;
  return (
    <fieldset className="turn-budget">
      <legend className="visually-hidden">
        <Trans>Turn budget</Trans>
      </legend>
      <div className="turn-budget-choices">
        {TURN_PRESETS.map((preset) => (
          <label key={preset.turns} className={preset.turns === turns ? "on" : ""}>
            <input
              type="radio"
              name="depth"
              className="visually-hidden"
              checked={preset.turns === turns}
              onChange={() => onChange(preset.turns)}
            />
            {i18n._(preset.name)}
          </label>
        ))}
      </div>
      <span className="turn-budget-description">
        <Trans>
          Up to <span className="num">{turns}</span> turns. {description ? i18n._(description) : ""}
        </Trans>
      </span>
    </fieldset>
  );
}
