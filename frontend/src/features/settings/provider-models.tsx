import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import type { Provider, ProviderKind } from "@/shared/api/providers";
import { ModelChoice } from "@/shared/model-setup/model-choice";
import { useModelTest } from "@/shared/model-setup/model-setup";
import { TestProgress, TestResult } from "@/shared/model-setup/test-result";
import { useDefaultModel } from "@/shared/model-setup/use-default-model";
import { Button } from "@/shared/ui/button";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import styles from "./section.module.css";

interface ProviderModelsProps {
  provider: Provider;
  kind: ProviderKind | undefined;
}

/** The models of a provider with what is known about them, the test of one, and the last result. */
export function ProviderModels({ provider, kind }: ProviderModelsProps) {
  const { name, last_test: lastTest } = provider;
  const [model, setModel] = useState(lastTest ? lastTest.model.slice(name.length + 1) : "");
  const test = useModelTest(name);
  const toast = useToast();
  const chosen = useDefaultModel(() => toast({ text: t`${name}/${model} answers new questions now.` }));
  const result = test.data ?? lastTest;
  return (
    <div className={styles.opened}>
      <ModelChoice
        provider={name}
        isOwnServer={kind ? kind.is_server : false}
        suggested={kind ? kind.suggested_models : []}
        chosen={model}
        onChoose={(next) => {
          setModel(next);
          test.reset();
        }}
      />
      <div className={styles.rowActions}>
        <Button disabled={!model || test.isPending} onClick={() => test.mutate(model)}>
          <Trans>Test the model</Trans>
        </Button>
        <Button disabled={!model || chosen.isPending} onClick={() => chosen.mutate({ provider: name, model })}>
          <Trans>Use for new questions</Trans>
        </Button>
      </div>
      {test.isPending && <TestProgress model={model} startedAt={test.submittedAt} />}
      {!test.isPending && result && result.model === `${name}/${model}` && <TestResult test={result} />}
      <ProblemNote error={test.error ?? chosen.error} />
    </div>
  );
}
