import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { type Provider, type ProviderKind, providersQuery, storeProvider, testProvider } from "../api/providers";
import { Button } from "../ui/button";
import { ProblemNote } from "../ui/problem-note";
import { EnvironmentModels } from "./environment-models";
import { ModelChoice } from "./model-choice";
import styles from "./model-setup.module.css";
import { ProviderChoice } from "./provider-choice";
import { ProviderForm } from "./provider-form";
import { answers } from "./setup-text";
import { TestProgress, TestResult } from "./test-result";
import { useDefaultModel } from "./use-default-model";

interface ModelSetupProps {
  /** The model answers new questions now. */
  onDone(model: { preset: string; name: string }): void;
  onCancel(): void;
}

/** A provider that can be used: its name, and whether it is stored. Otherwise the environment has its key. */
interface UsableProvider {
  name: string;
  kind: ProviderKind;
  isStored: boolean;
}

/** Sets up a model in three steps: choose a provider, connect it, and test and choose one of its models. */
export function ModelSetup({ onDone, onCancel }: ModelSetupProps) {
  const [kind, setKind] = useState<ProviderKind | null>(null);
  const [provider, setProvider] = useState<UsableProvider | null>(null);
  const client = useQueryClient();
  const connect = useMutation({
    mutationFn: async (server: ProviderKind) => {
      const stored = await client.fetchQuery({ ...providersQuery, staleTime: 0 });
      const earlier = stored.find(({ name }) => name === server.name);
      if (earlier && isAt(earlier, server.default_address)) return earlier;
      const name = earlier ? `${server.name}-local` : server.name;
      return storeProvider(name, { provider: server.name, api_base: "", key: "" });
    },
    onSuccess: async (stored, server) => {
      await client.invalidateQueries({ queryKey: ["providers"] });
      setProvider({ name: stored.name, kind: server, isStored: true });
    },
  });
  const step = provider ? 3 : kind ? 2 : 1;
  return (
    <div className={styles.setup}>
      <StepTitle step={step}>
        {step === 1 && t`Choose a provider`}
        {step === 2 && kind?.title}
        {step === 3 && t`Choose a model`}
      </StepTitle>
      {step === 1 && (
        <>
          <ProviderChoice onChoose={setKind} onServer={(server) => connect.mutate(server)} />
          <ProblemNote error={connect.error} />
          <div className={styles.actions}>
            <Button kind="plain" onClick={onCancel}>
              <Trans>Cancel</Trans>
            </Button>
          </div>
        </>
      )}
      {step === 2 && kind && (
        <ProviderForm
          kind={kind}
          stored={null}
          onStored={({ name }) => setProvider({ name, kind, isStored: true })}
          onEnvironment={() => setProvider({ name: kind.name, kind, isStored: false })}
          onCancel={() => setKind(null)}
        />
      )}
      {provider && (
        <ModelStep
          provider={provider}
          onDone={onDone}
          onBack={() => {
            setProvider(null);
            setKind(provider.kind);
          }}
        />
      )}
    </div>
  );
}

/** Return whether a stored provider is the server at this address. A provider without an address has the default one. */
function isAt(provider: Provider, address: string): boolean {
  return provider.api_base === "" || provider.api_base === address;
}

/** The title of a step. It gets the focus when the step changes, so that a screen reader reads it. */
function StepTitle({ step, children }: { step: number; children: ReactNode }) {
  const title = useRef<HTMLHeadingElement>(null);
  const shown = useRef(step);
  useEffect(() => {
    if (shown.current !== step) title.current?.focus();
    shown.current = step;
  }, [step]);
  return (
    <h3 ref={title} tabIndex={-1} className={styles.title}>
      <span className="quiet num">
        <Trans>Step {step} of 3</Trans>
      </span>
      {children}
    </h3>
  );
}

interface ModelStepProps {
  provider: UsableProvider;
  onDone: ModelSetupProps["onDone"];
  onBack(): void;
}

/** Choose a model, test it, and let it answer new questions. The key of the environment cannot be tested. */
function ModelStep({ provider: { name, kind, isStored }, onDone, onBack }: ModelStepProps) {
  const [model, setModel] = useState("");
  const chosen = useDefaultModel((preset) => onDone({ preset, name: `${name}/${model}` }));
  const test = useModelTest(name);
  const choose = (next: string) => {
    setModel(next);
    test.reset();
  };
  const isReady = !isStored || (test.data !== undefined && answers(test.data));
  return (
    <>
      {isStored ? (
        <ModelChoice
          provider={name}
          isOwnServer={kind.is_server}
          suggested={kind.suggested_models}
          chosen={model}
          onChoose={choose}
        />
      ) : (
        <EnvironmentModels kind={kind} chosen={model} onChoose={choose} />
      )}
      {test.isPending && <TestProgress model={model} startedAt={test.submittedAt} />}
      {test.data && <TestResult test={test.data} />}
      <ProblemNote error={test.error ?? chosen.error} />
      <div className={styles.actions}>
        {isStored && !isReady && (
          <Button kind="primary" disabled={!model || test.isPending} onClick={() => test.mutate(model)}>
            {test.data ? t`Test again` : t`Test the model`}
          </Button>
        )}
        {isReady && (
          <Button
            kind="primary"
            disabled={!model || chosen.isPending}
            onClick={() => chosen.mutate({ provider: name, model })}
          >
            <Trans>Use for new questions</Trans>
          </Button>
        )}
        <Button kind="plain" disabled={test.isPending} onClick={onBack}>
          <Trans>Back</Trans>
        </Button>
      </div>
    </>
  );
}

/** Test a model of a stored provider. The list of providers shows the result afterwards. */
export function useModelTest(provider: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (model: string) => testProvider(provider, model),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: ["providers"] }),
        client.invalidateQueries({ queryKey: ["presets"] }),
      ]),
  });
}
