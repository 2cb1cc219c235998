import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import type { Tenant } from "@/shared/api/installation";
import { type Preset, presetsQuery } from "@/shared/api/providers";
import { describePreset } from "@/shared/model-setup/engine-text";
import { Link } from "@/shared/routing/routing";
import { combineQueries, Failure, type Loadable } from "@/shared/ui/loaded";
import type { Settings } from "./settings";

interface WhoAnswersProps {
  tenant: Loadable<Tenant>;
  settings: Settings;
  /** Other presets are loaded when the person begins to use the form. */
  isInUse: boolean;
  onChange(part: Partial<Settings>): void;
}

const ENGINE = "engine:";
const EXTRACTIVE = "extractive";

/** Who answers the question: the default preset, another one, or no model. Every other engine is among the options. */
export function WhoAnswers({ tenant, settings: { preset, engine }, isInUse, onChange }: WhoAnswersProps) {
  const presets = useQuery({ ...presetsQuery, enabled: isInUse });
  const written = engine.trim();
  const change = (value: string) => {
    if (value.startsWith(ENGINE)) return onChange({ preset: "", engine: value.slice(ENGINE.length) });
    const turns = findPreset(presets.data, value || tenant.data?.default_preset)?.budget.max_turns;
    onChange({ preset: value, engine: "", ...(turns ? { turns } : {}) });
  };
  const options = listOptions(tenant.data, presets.data, preset, written);
  const selected = written ? `${ENGINE}${written}` : preset;
  const hasNoModel = written === EXTRACTIVE || (selected === "" && isExtractive(tenant.data));
  return (
    <span className="who-answers">
      <select
        className="field"
        aria-label={t`Who answers`}
        disabled={!tenant.data}
        value={selected}
        onChange={(event) => change(event.target.value)}
      >
        {options.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      {hasNoModel && (
        <Link to="/settings/$section" params={{ section: "models" }}>
          <Trans>Set up a model</Trans>
        </Link>
      )}
      <Failure query={combineQueries({ tenant, presets })} />
    </span>
  );
}

function findPreset(presets: readonly Preset[] | undefined, name: string | null | undefined): Preset | undefined {
  return presets?.find((preset) => preset.name === name);
}

/** Return whether a question that names nothing is answered without a model. */
function isExtractive(tenant: Tenant | undefined): boolean {
  return tenant !== undefined && tenant.default_preset === null && tenant.default_engine === EXTRACTIVE;
}

interface Option {
  value: string;
  label: string;
}

/** Return the default, the presets, and no model. What is selected is always among them. */
function listOptions(
  tenant: Tenant | undefined,
  presets: readonly Preset[] | undefined,
  preset: string,
  engine: string,
): Option[] {
  if (!tenant) return [{ value: engine ? `${ENGINE}${engine}` : preset, label: engine || preset || "…" }];
  const { default_preset: chosen, default_engine: installed } = tenant;
  const withoutModel = t`No model: quotes only`;
  const usual = chosen ?? (installed === EXTRACTIVE ? withoutModel : installed);
  const others = (presets ? presets : []).filter(({ name }) => name !== chosen);
  const options: Option[] = [
    { value: "", label: usual },
    ...others.map((one) => ({ value: one.name, label: describePreset(one) })),
  ];
  if (usual !== withoutModel || engine === EXTRACTIVE) {
    options.push({ value: `${ENGINE}${EXTRACTIVE}`, label: withoutModel });
  }
  if (engine && engine !== EXTRACTIVE) options.push({ value: `${ENGINE}${engine}`, label: engine });
  if (preset && !options.some(({ value }) => value === preset)) options.push({ value: preset, label: preset });
  return options;
}
