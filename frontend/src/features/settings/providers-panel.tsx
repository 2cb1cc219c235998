import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { enginesQuery } from "@/shared/api/installation";
import {
  deleteProvider,
  type Provider,
  type ProviderKind,
  presetsQuery,
  providerKindsQuery,
  providersQuery,
} from "@/shared/api/providers";
import { joinList } from "@/shared/format/lists";
import { formatAgo } from "@/shared/format/numbers";
import { listLocalServers } from "@/shared/model-setup/local-servers";
import { ModelSetup } from "@/shared/model-setup/model-setup";
import { ProviderForm } from "@/shared/model-setup/provider-form";
import { answers } from "@/shared/model-setup/setup-text";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { EmptyState } from "@/shared/ui/empty-state";
import { useNow } from "@/shared/ui/hooks";
import { combineQueries, Failure, Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import { ProviderModels } from "./provider-models";
import styles from "./section.module.css";

/** The stored providers with their state, and the way to add one. */
export function ProvidersPanel() {
  const providers = useQuery(providersQuery);
  const kinds = useQuery(providerKindsQuery);
  const [isAdding, setAdding] = useState(false);
  const toast = useToast();
  return (
    <Panel
      level={3}
      title={t`Providers`}
      actions={
        !isAdding && (
          <Button onClick={() => setAdding(true)}>
            <Trans>Add a model</Trans>
          </Button>
        )
      }
    >
      {isAdding && (
        <div className={styles.adding}>
          <ModelSetup
            onDone={({ name }) => {
              setAdding(false);
              toast({ text: t`${name} answers new questions now.` });
            }}
            onCancel={() => setAdding(false)}
          />
        </div>
      )}
      <Loaded
        query={combineQueries({ providers, kinds })}
        label={t`the providers`}
        empty={(loaded) =>
          loaded.providers.length === 0 ? (
            <EmptyState title={t`No providers yet`}>
              <Trans>
                A provider is a service of language models, such as OpenAI or Mistral, or a server of your own, such as
                Ollama. “Add a model” stores one and tests a model of it.
              </Trans>
            </EmptyState>
          ) : null
        }
      >
        {(loaded) => (
          <ul>
            {loaded.providers.map((provider) => (
              <ProviderRow
                key={provider.name}
                provider={provider}
                kind={loaded.kinds.find(({ name }) => name === provider.provider)}
              />
            ))}
          </ul>
        )}
      </Loaded>
      {!isAdding && <LocalServersNote stored={providers.data} onAdd={() => setAdding(true)} />}
    </Panel>
  );
}

/** Servers that were found on the machine and are not stored. */
function LocalServersNote({ stored, onAdd }: { stored: readonly Provider[] | undefined; onAdd(): void }) {
  const engines = useQuery(enginesQuery);
  if (!engines.data || !stored) return <Failure query={engines} />;
  const servers = listLocalServers(engines.data).filter(
    ({ provider }) => !stored.some((one) => one.provider === provider),
  );
  if (servers.length === 0) return null;
  const names = joinList(servers.map(({ provider }) => provider));
  return (
    <p className={styles.note}>
      <Trans>Found on the machine of Offing: {names}.</Trans>{" "}
      <button type="button" className="btn small" onClick={onAdd}>
        <Trans>Use it</Trans>
      </button>
    </p>
  );
}

interface ProviderRowProps {
  provider: Provider;
  /** `undefined` means that the server does not list this kind of provider, so it cannot be changed here. */
  kind: ProviderKind | undefined;
}

function ProviderRow({ provider, kind }: ProviderRowProps) {
  const [opened, setOpened] = useState<"models" | "edit" | null>(null);
  const [isRemoving, setRemoving] = useState(false);
  const toggle = (part: "models" | "edit") => setOpened((before) => (before === part ? null : part));
  const { name, api_base: address } = provider;
  return (
    <li className={styles.row}>
      <div className={styles.rowHead}>
        <span className={styles.rowName}>
          <b>{name}</b>
          <span className="quiet" dir="auto">
            {kind ? kind.title : provider.provider}
            {address && ` · ${address}`}
          </span>
        </span>
        <ProviderState provider={provider} isServer={kind ? kind.is_server : false} />
        <span className={styles.rowActions}>
          <Button small aria-expanded={opened === "models"} onClick={() => toggle("models")}>
            <Trans>Models and test</Trans>
          </Button>
          {kind && (
            <Button small aria-expanded={opened === "edit"} onClick={() => toggle("edit")}>
              {kind.is_server || kind.needs_address ? t`Change` : t`Replace the key`}
            </Button>
          )}
          <Button small kind="danger" onClick={() => setRemoving(true)}>
            <Trans>Remove</Trans>
          </Button>
        </span>
      </div>
      {opened === "models" && <ProviderModels provider={provider} kind={kind} />}
      {opened === "edit" && kind && (
        <ProviderForm kind={kind} stored={provider} onStored={() => setOpened(null)} onCancel={() => setOpened(null)} />
      )}
      <RemoveDialog provider={provider} open={isRemoving} onClose={() => setRemoving(false)} />
    </li>
  );
}

/** Whether a key is stored, and what the last test showed. */
function ProviderState({ provider, isServer }: { provider: Provider; isServer: boolean }) {
  const now = useNow(60_000);
  const { key_set: hasKey, last_test: test } = provider;
  if (test) {
    const ago = formatAgo(test.tested_at, now);
    return answers(test) ? (
      <Badge tone="moss">
        <Trans>answered {ago}</Trans>
      </Badge>
    ) : (
      <Badge tone="coral">
        <Trans>did not answer, {ago}</Trans>
      </Badge>
    );
  }
  if (!hasKey && !isServer)
    return (
      <Badge tone="coral">
        <Trans>no key</Trans>
      </Badge>
    );
  return (
    <Badge>
      <Trans>not tested</Trans>
    </Badge>
  );
}

interface RemoveDialogProps {
  provider: Provider;
  open: boolean;
  onClose(): void;
}

function RemoveDialog({ provider: { name }, open, onClose }: RemoveDialogProps) {
  const client = useQueryClient();
  const presets = useQuery({ ...presetsQuery, enabled: open });
  const remove = useMutation({
    mutationFn: () => deleteProvider(name),
    onSuccess: async () => {
      onClose();
      await Promise.all([
        client.invalidateQueries({ queryKey: ["providers"] }),
        client.invalidateQueries({ queryKey: ["presets"] }),
      ]);
    },
  });
  return (
    <Dialog open={open} onClose={onClose} title={t`Remove ${name}?`}>
      <p>
        <Trans>
          Its key is deleted and cannot be restored. Runs that use its models fail from then on. Reports stay.
        </Trans>
      </p>
      <Loaded query={presets} label={t`the presets`}>
        {(loaded) => {
          const users = loaded
            .filter((preset) => Object.values(preset.engines).some(({ model }) => model?.startsWith(`${name}/`)))
            .map((preset) => preset.name);
          return users.length === 0 ? null : (
            <p className="notice sun">
              <Trans>Presets that use it: {joinList(users)}. Choose other models for them first.</Trans>
            </p>
          );
        }}
      </Loaded>
      <ProblemNote error={remove.error} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Keep it</Trans>
        </Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          <Trans>Remove</Trans>
        </Button>
      </div>
    </Dialog>
  );
}
