import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useId } from "react";
import { TURN_PRESETS } from "./presets";
import { MAX_TURNS } from "./validation";

interface DepthFieldProps {
  turns: number;
  /** What is wrong with the number. Empty means that it is valid. */
  error?: string;
  onChange(turns: number): void;
}

/** The maximum number of turns: one of four depths, or any number. */
export function DepthField({ turns, error = "", onChange }: DepthFieldProps) {
  const id = useId();
  const description = TURN_PRESETS.find((one) => one.turns === turns)?.description;
  return (
    <fieldset className="depth">
      <legend className="visually-hidden">
        <Trans>Depth</Trans>
      </legend>
      <div className="depth-row">
        <div className="depth-choices">
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
        <label className="depth-number">
          <input
            className="field num"
            type="number"
            aria-label={t`Maximum number of turns`}
            min={1}
            max={MAX_TURNS}
            step={1}
            value={turns || ""}
            aria-invalid={error !== ""}
            aria-describedby={`${id}-description`}
            title={t`Maximum number of turns, 1 to 2,048`}
            onChange={(event) => onChange(event.target.value === "" ? 0 : Number(event.target.value))}
          />
          <span aria-hidden="true">
            <Trans>turns</Trans>
          </span>
        </label>
      </div>
      <p id={`${id}-description`} className="depth-note">
        {error ? <span className="depth-error">{error}</span> : (description && i18n._(description)) || null}
      </p>
    </fieldset>
  );
}
