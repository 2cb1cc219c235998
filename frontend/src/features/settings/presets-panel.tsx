import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { tenantQuery, updateTenant } from "@/shared/api/installation";
import { deletePreset, type Preset, presetsQuery, storePreset } from "@/shared/api/providers";
import { joinParts } from "@/shared/format/lists";
import { formatDuration, formatUsd } from "@/shared/format/numbers";
import { engineText } from "@/shared/model-setup/engine-text";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { EmptyState } from "@/shared/ui/empty-state";
import { combineQueries, Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import { PresetForm } from "./preset-form";
import { DEPTH_LABELS, roleLabel } from "./preset-text";
import styles from "./section.module.css";

/** Presets: which model answers which role, and the limits of a run. */
export function PresetsPanel() {
  const presets = useQuery(presetsQuery);
  const tenant = useQuery(tenantQuery);
  const [edited, setEdited] = useState<string | null>(null);
  return (
    <Panel
      level={3}
      title={t`Presets`}
      actions={
        edited === null && (
          <Button onClick={() => setEdited("")}>
            <Trans>New preset</Trans>
          </Button>
        )
      }
    >
      <p className={styles.intro}>
        <Trans>
          A preset names the model of each role and the limits of a run. A question can select it by its name.
        </Trans>
      </p>
      <Loaded query={combineQueries({ presets, tenant })} label={t`the presets`}>
        {(loaded) => (
          <>
            {edited === "" && <PresetForm preset={null} taken={loaded.presets} onClose={() => setEdited(null)} />}
            {loaded.presets.length === 0 && edited === null && (
              <EmptyState title={t`No presets yet`}>
                <Trans>
                  Three are built in as soon as a provider is stored: a fast one, a thorough one, and one for a server
                  of your own. A model that you set up gets its own.
                </Trans>
              </EmptyState>
            )}
            <ul>
              {loaded.presets.map((preset) => (
                <li key={preset.name} className={styles.row}>
                  <PresetRow
                    preset={preset}
                    isDefault={loaded.tenant.default_preset === preset.name}
                    onEdit={() => setEdited(preset.name)}
                  />
                  {edited === preset.name && (
                    <PresetForm preset={preset} taken={loaded.presets} onClose={() => setEdited(null)} />
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Panel>
  );
}

interface PresetRowProps {
  preset: Preset;
  isDefault: boolean;
  onEdit(): void;
}

function PresetRow({ preset, isDefault, onEdit }: PresetRowProps) {
  const client = useQueryClient();
  const toast = useToast();
  const refresh = () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ["presets"] }),
      client.invalidateQueries({ queryKey: tenantQuery.queryKey }),
    ]);
  const choose = useMutation({
    mutationFn: () => updateTenant({ default_preset: preset.name }),
    onSuccess: (tenant) => client.setQueryData(tenantQuery.queryKey, tenant),
  });
  const restore = useMutation({
    mutationFn: async () => {
      await storePreset(preset.name, { engines: preset.engines, budget: preset.budget });
      if (isDefault) await updateTenant({ default_preset: preset.name });
    },
    onSuccess: refresh,
    onError: (error) => toast({ text: t`The preset ${preset.name} was not restored. ${error.message}` }),
  });
  const remove = useMutation({
    mutationFn: () => deletePreset(preset.name),
    onSuccess: async () => {
      toast({ text: t`The preset ${preset.name} was deleted.`, undo: () => restore.mutate() });
      await refresh();
    },
  });
  return (
    <>
      <div className={styles.rowHead}>
        <span className={styles.rowName}>
          <b>{preset.name}</b>
          <span className="quiet num">{limitsText(preset)}</span>
        </span>
        {isDefault && (
          <Badge tone="sea">
            <Trans>answers new questions</Trans>
          </Badge>
        )}
        {preset.built_in && (
          <Badge>
            <Trans>built in</Trans>
          </Badge>
        )}
        <span className={styles.rowActions}>
          {!isDefault && (
            <Button small disabled={choose.isPending} onClick={() => choose.mutate()}>
              <Trans>Use for new questions</Trans>
            </Button>
          )}
          <Button small onClick={onEdit}>
            <Trans>Edit</Trans>
          </Button>
          {!preset.built_in && (
            <Button small kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
              <Trans>Delete</Trans>
            </Button>
          )}
        </span>
      </div>
      <dl className={styles.roles}>
        {Object.entries(preset.engines).map(([role, config], _, { length }) => (
          <RoleEngine
            key={role}
            label={roleLabel(role, length === 1)}
            engine={engineText(config)}
            fallbacks={config.fallbacks?.length ?? 0}
          />
        ))}
      </dl>
      <ProblemNote error={choose.error ?? remove.error ?? restore.error} />
    </>
  );
}

function RoleEngine({ label, engine, fallbacks }: { label: string; engine: string; fallbacks: number }) {
  return (
    <>
      <dt>{label}</dt>
      <dd dir="auto">
        {engine}
        {fallbacks > 0 && (
          <span className="quiet"> {plural(fallbacks, { one: "and # fallback", other: "and # fallbacks" })}</span>
        )}
      </dd>
    </>
  );
}

/** Return the limits of a preset in words. */
function limitsText({ budget }: Preset): string {
  const { depth, max_turns: turns, max_cost_usd: usd, max_seconds: seconds, max_tokens: tokens } = budget;
  const parts = [
    depth ? i18n._(DEPTH_LABELS[depth]) : "",
    turns != null ? plural(turns, { one: "# turn", other: "# turns" }) : "",
    usd != null ? t`up to ${formatUsd(usd)}` : "",
    seconds != null ? formatDuration(seconds) : "",
    tokens != null ? plural(tokens, { one: "# token", other: "# tokens" }) : "",
  ];
  return joinParts(parts.filter((part) => part !== "")) || t`no limits of its own`;
}
