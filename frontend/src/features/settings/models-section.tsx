import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Tenant, tenantQuery, updateTenant } from "@/shared/api/installation";
import { type Preset, presetsQuery } from "@/shared/api/providers";
import { describePreset } from "@/shared/model-setup/engine-text";
import { Field, Select } from "@/shared/ui/field";
import { combineQueries, Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import { PresetsPanel } from "./presets-panel";
import { ProvidersPanel } from "./providers-panel";
import styles from "./section.module.css";

/** What answers new questions, the providers of the tenant with their models, and presets. */
export function ModelsSection() {
  return (
    <>
      <Panel level={3} title={t`New questions`}>
        <DefaultModel />
      </Panel>
      <ProvidersPanel />
      <PresetsPanel />
    </>
  );
}

function DefaultModel() {
  const tenant = useQuery(tenantQuery);
  const presets = useQuery(presetsQuery);
  return (
    <Loaded query={combineQueries({ tenant, presets })} label={t`the presets`}>
      {(loaded) => <DefaultPresetField tenant={loaded.tenant} presets={loaded.presets} />}
    </Loaded>
  );
}

/** The preset that answers a question which names no other. A preset that is gone stays visible. */
function DefaultPresetField({ tenant, presets }: { tenant: Tenant; presets: readonly Preset[] }) {
  const client = useQueryClient();
  const update = useMutation({
    mutationFn: (name: string | null) => updateTenant({ default_preset: name }),
    onSuccess: (now) => client.setQueryData(tenantQuery.queryKey, now),
  });
  const { default_preset: chosen, default_engine: engine } = tenant;
  const isGone = chosen !== null && !presets.some(({ name }) => name === chosen);
  const withoutPreset = engine === "extractive" ? t`No model: quotes from the documents` : t`No preset: ${engine}`;
  return (
    <>
      <Field
        label={t`Who answers`}
        description={t`A question can name another preset or engine. Follow-up questions keep those of their thread.`}
        error={isGone ? t`This preset is not available any more. Choose another one.` : ""}
      >
        {(control) => (
          <Select
            {...control}
            value={chosen ?? ""}
            disabled={update.isPending}
            onChange={(event) => update.mutate(event.target.value || null)}
          >
            <option value="">{withoutPreset}</option>
            {isGone && <option value={chosen}>{chosen}</option>}
            {presets.map((preset) => (
              <option key={preset.name} value={preset.name}>
                {describePreset(preset)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <ProblemNote error={update.error} />
      {chosen === null && engine === "extractive" && (
        <p className={`quiet ${styles.meaning}`}>
          <Trans>
            Without a model, Offing picks sentences from your documents and cites them. It writes nothing of its own.
          </Trans>
        </p>
      )}
    </>
  );
}
