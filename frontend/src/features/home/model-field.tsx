import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import type { Tenant } from "@/shared/api/installation";
import type { Preset } from "@/shared/api/providers";
import { engineText } from "@/shared/model-setup/engine-text";
import { combineQueries, type Loadable, Loaded } from "@/shared/ui/loaded";

interface ModelFieldProps {
  tenant: Loadable<Tenant>;
  presets: Loadable<readonly Preset[]>;
  /** Name of the chosen preset. Empty means the default. */
  preset: string;
  /** Engine that answers all roles instead of a preset. Empty means none. */
  engine: string;
  onChange(part: { preset: string; engine: string }): void;
}

const ENGINE = "engine:";
const EXTRACTIVE = "extractive";

/** Who answers the question: the default preset, another one, or no model. */
export function ModelField({ tenant, presets, preset, engine, onChange }: ModelFieldProps) {
  const change = (value: string) => {
    const isEngine = value.startsWith(ENGINE);
    onChange({ preset: isEngine ? "" : value, engine: isEngine ? value.slice(ENGINE.length) : "" });
  };
  return (
    <Loaded query={combineQueries({ tenant, presets })} label={t`the models`}>
      {(loaded) => {
        const { default_preset: chosen, default_engine: installed } = loaded.tenant;
        const isWithoutModel =
          engine === EXTRACTIVE || (!engine && !preset && chosen === null && installed === EXTRACTIVE);
        const others = loaded.presets.filter(({ name }) => name !== chosen);
        return (
          <span className="model-choice">
            <select
              className="field"
              aria-label={t`Who answers`}
              value={engine ? `${ENGINE}${engine}` : preset}
              onChange={(event) => change(event.target.value)}
            >
              <option value="">{chosen ?? (installed === EXTRACTIVE ? t`No model: quotes only` : installed)}</option>
              {others.map((one) => (
                <option key={one.name} value={one.name}>
                  {presetOption(one)}
                </option>
              ))}
              {preset && preset !== chosen && !others.some(({ name }) => name === preset) && (
                <option value={preset}>{preset}</option>
              )}
              {engine && engine !== EXTRACTIVE && <option value={`${ENGINE}${engine}`}>{engine}</option>}
              {(chosen !== null || installed !== EXTRACTIVE || engine === EXTRACTIVE) && (
                <option value={`${ENGINE}${EXTRACTIVE}`}>{t`No model: quotes only`}</option>
              )}
            </select>
            {isWithoutModel && (
              <Link to="/settings/$section" params={{ section: "models" }}>
                <Trans>Set up a model</Trans>
              </Link>
            )}
          </span>
        );
      }}
    </Loaded>
  );
}

function presetOption({ name, engines }: Preset): string {
  const model = engines.all ? engineText(engines.all) : "";
  return model && !model.endsWith(name) ? `${name}: ${model}` : name;
}
