import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import {
  changeQuestionPreset,
  createQuestionPreset,
  deleteQuestionPreset,
  type QuestionPreset,
  questionPresetsQuery,
} from "@/shared/api/asking";
import { graphsQuery } from "@/shared/api/installation";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { Field, Input, Select } from "@/shared/ui/field";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import styles from "./options.module.css";
import { fromPreset, toPreset } from "./question-presets";
import { DEFAULT_SETTINGS, type Settings } from "./settings";

interface QuestionPresetsProps {
  settings: Settings;
  onReplace(settings: Settings): void;
  /** Id of a preset to apply once, from the address of the page. `null` means none. */
  preset: string | null;
  onPresetApplied(): void;
}

type Naming = { kind: "save" } | { kind: "rename"; preset: QuestionPreset };

/** Saved ways to ask: apply one, or save, rename, update and delete it. */
export function QuestionPresets({ settings, onReplace, preset, onPresetApplied }: QuestionPresetsProps) {
  const client = useQueryClient();
  const toast = useToast();
  const presets = useQuery(questionPresetsQuery);
  const [selectedId, setSelectedId] = useState("");
  const [naming, setNaming] = useState<Naming | null>(null);
  const selected = presets.data?.items.find(({ id }) => id === selectedId);
  const refresh = () => client.invalidateQueries({ queryKey: questionPresetsQuery.queryKey });
  const replace = (next: Settings, text: string) => {
    onReplace(next);
    toast({ text, undo: () => onReplace(settings) });
  };
  const apply = useMutation({
    mutationFn: async (preset: QuestionPreset) =>
      fromPreset(preset.settings, await client.ensureQueryData(graphsQuery), settings.toolPolicy),
    onSuccess: (next, { name }) => replace(next, t`The options are now those of “${name}”.`),
  });
  const requested = preset === null ? undefined : presets.data?.items.find(({ id }) => id === preset);
  const isDeleted = preset !== null && presets.data !== undefined && !requested;
  const latest = useRef({ apply: apply.mutate, onPresetApplied });
  useEffect(() => {
    latest.current = { apply: apply.mutate, onPresetApplied };
  });
  useEffect(() => {
    if (isDeleted) latest.current.onPresetApplied();
    if (!requested) return;
    setSelectedId(requested.id);
    latest.current.apply(requested, { onSuccess: () => latest.current.onPresetApplied() });
  }, [requested, isDeleted]);
  const update = useMutation({
    mutationFn: async (preset: QuestionPreset) => {
      const graphs = await client.ensureQueryData(graphsQuery);
      return changeQuestionPreset(preset.id, { settings: toPreset(settings, graphs) });
    },
    onSuccess: async ({ name }) => {
      await refresh();
      toast({ text: t`“${name}” has the options of this question now.` });
    },
  });
  const remove = useMutation({
    mutationFn: (preset: QuestionPreset) => deleteQuestionPreset(preset.id),
    onSuccess: async (_, preset) => {
      setSelectedId("");
      await refresh();
      const restore = async () => {
        await createQuestionPreset(preset.name, preset.settings as Parameters<typeof createQuestionPreset>[1]);
        await refresh();
      };
      toast({ text: t`“${preset.name}” was deleted.`, undo: () => restoring.mutate(restore) });
    },
  });
  const restoring = useMutation({ mutationFn: (restore: () => Promise<void>) => restore() });
  return (
    <div className={styles.presets}>
      <Loaded query={presets} label={t`the saved ways to ask`}>
        {({ items }) => (
          <Field label={t`Saved ways to ask`}>
            {(control) => (
              <Select
                {...control}
                value={selectedId}
                onChange={(event) => {
                  const chosen = items.find(({ id }) => id === event.target.value);
                  setSelectedId(chosen?.id ?? "");
                  if (chosen) apply.mutate(chosen);
                }}
              >
                <option value="">{items.length > 0 ? t`Choose one to apply it` : t`None is saved yet`}</option>
                {items.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        )}
      </Loaded>
      <div className={styles.actions}>
        <Button small onClick={() => setNaming({ kind: "save" })}>
          <Trans>Save these options…</Trans>
        </Button>
        {selected && (
          <>
            <Button small kind="plain" disabled={update.isPending} onClick={() => update.mutate(selected)}>
              <Trans>Update</Trans>
            </Button>
            <Button small kind="plain" onClick={() => setNaming({ kind: "rename", preset: selected })}>
              <Trans>Rename…</Trans>
            </Button>
            <Button small kind="plain" disabled={remove.isPending} onClick={() => remove.mutate(selected)}>
              <Trans>Delete</Trans>
            </Button>
          </>
        )}
        <Button small kind="plain" onClick={() => replace(DEFAULT_SETTINGS, t`The options are the defaults again.`)}>
          <Trans>Reset to defaults</Trans>
        </Button>
      </div>
      <ProblemNote error={apply.error ?? update.error ?? remove.error ?? restoring.error} />
      {naming && (
        <NameDialog
          naming={naming}
          settings={settings}
          onClose={() => setNaming(null)}
          onSaved={async (preset) => {
            setNaming(null);
            await refresh();
            setSelectedId(preset.id);
          }}
        />
      )}
    </div>
  );
}

interface NameDialogProps {
  naming: Naming;
  settings: Settings;
  onClose(): void;
  onSaved(preset: QuestionPreset): void;
}

function NameDialog({ naming, settings, onClose, onSaved }: NameDialogProps) {
  const client = useQueryClient();
  const [name, setName] = useState(naming.kind === "rename" ? naming.preset.name : "");
  const save = useMutation({
    mutationFn: async () => {
      if (naming.kind === "rename") return changeQuestionPreset(naming.preset.id, { name });
      return createQuestionPreset(name, toPreset(settings, await client.ensureQueryData(graphsQuery)));
    },
    onSuccess: onSaved,
  });
  const submit = () => {
    if (name.trim()) save.mutate();
  };
  return (
    <Dialog open onClose={onClose} title={naming.kind === "rename" ? t`Rename a way to ask` : t`Save a way to ask`}>
      <div className={styles.dialog}>
        <Field
          label={t`Name`}
          description={t`The question, attached documents and the tool policy are not part of it.`}
        >
          {(control) => (
            <Input
              {...control}
              dir="auto"
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.target.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
                event.preventDefault(); // it is inside the form of the question
                submit();
              }}
            />
          )}
        </Field>
        <ProblemNote error={save.error} />
        <div className={styles.actions}>
          <Button kind="primary" disabled={save.isPending || !name.trim()} onClick={submit}>
            <Trans>Save</Trans>
          </Button>
          <Button kind="plain" onClick={onClose}>
            <Trans>Cancel</Trans>
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
