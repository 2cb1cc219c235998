import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { ProblemError } from "../api/client";
import { type Provider, type ProviderKind, providersQuery, storeProvider } from "../api/providers";
import { Button } from "../ui/button";
import { Field, Input } from "../ui/field";
import { ProblemNote } from "../ui/problem-note";
import { AcceptNote } from "./accept-note";
import styles from "./model-setup.module.css";

interface ProviderFormProps {
  kind: ProviderKind;
  /** The stored provider that is changed. `null` means a new one. */
  stored: Provider | null;
  onStored(provider: Provider): void;
  /** Use the key of the installation's environment instead of storing one. */
  onEnvironment?: () => void;
  onCancel(): void;
}

// Not translated: an address.
const EXAMPLE_ADDRESS = "https://models.example/v1";

/** Name, address and key of a provider, as far as its kind needs them. The key is sent once and never shown again. */
export function ProviderForm({ kind, stored, onStored, onEnvironment, onCancel }: ProviderFormProps) {
  const client = useQueryClient();
  const hasAddress = kind.is_server || kind.needs_address;
  const [name, setName] = useState(stored?.name ?? kind.name);
  const [address, setAddress] = useState(stored?.api_base ?? "");
  const [key, setKey] = useState("");
  const others = useQuery({ ...providersQuery, enabled: hasAddress && stored === null });
  const replaced = others.data?.find((one) => one.name === name.trim());
  const isNewPlace = stored !== null && address.trim().replace(/\/$/, "") !== stored.api_base;
  const store = useMutation({
    mutationFn: () =>
      storeProvider(name.trim(), {
        provider: kind.name,
        api_base: address.trim(),
        // Without a key, that of a stored provider is kept. A key belongs to its address, so another address needs it.
        key: key.trim() || (stored && !isNewPlace ? null : ""),
        max_concurrent_calls: stored?.max_concurrent_calls ?? null,
      }),
    onSuccess: async (provider) => {
      setKey("");
      await Promise.all([
        client.invalidateQueries({ queryKey: ["providers"] }),
        client.invalidateQueries({ queryKey: ["presets"] }),
        client.invalidateQueries({ queryKey: ["provider-models", provider.name] }),
      ]);
      onStored(provider);
    },
  });
  const actions = useRef<HTMLDivElement>(null);
  // The form is long: what is wrong with it is often below the edge of the window.
  useEffect(() => {
    if (store.error) actions.current?.scrollIntoView({ block: "nearest" });
  }, [store.error]);
  const isKeyNeeded = !hasAddress && !stored?.key_set;
  const problem = store.error instanceof ProblemError ? store.error : null;
  const isNotAccepted = problem?.field === "api_base" && /offing engine accept/.test(problem.remedy ?? "");
  const handleSubmit = (event: FormEvent) => {
    event.preventDefault();
    store.mutate();
  };
  return (
    <form className={styles.form} aria-label={kind.title} onSubmit={handleSubmit}>
      {hasAddress && (
        <Field
          label={t`Address`}
          description={
            kind.default_address
              ? t`Leave it empty for ${kind.default_address} on the machine of Offing.`
              : t`The address of your server, such as https://models.example/v1.`
          }
        >
          {(control) => (
            <Input
              {...control}
              className="mono"
              type="url"
              inputMode="url"
              spellCheck={false}
              autoComplete="off"
              placeholder={kind.default_address || EXAMPLE_ADDRESS}
              value={address}
              required={kind.needs_address}
              onChange={(event) => setAddress(event.target.value)}
            />
          )}
        </Field>
      )}
      <Field
        label={isKeyNeeded ? t`Key` : t`Key, if the server needs one`}
        description={
          <>
            {kind.key_page && (
              <>
                <a href={kind.key_page} target="_blank" rel="noreferrer">
                  <Trans>Create a key on the page of {kind.title}</Trans>
                </a>
                {". "}
              </>
            )}
            {stored?.key_set && !isNewPlace ? (
              <Trans>A key is stored. Leave this empty to keep it.</Trans>
            ) : (
              <Trans>It is encrypted, is sent only to this provider, and is never shown again.</Trans>
            )}
          </>
        }
      >
        {(control) => (
          <Input
            {...control}
            className="mono"
            type="password"
            autoComplete="off"
            spellCheck={false}
            value={key}
            required={isKeyNeeded}
            onChange={(event) => setKey(event.target.value)}
          />
        )}
      </Field>
      {hasAddress && stored === null && (
        <Field
          label={t`Name`}
          description={
            replaced
              ? t`You have a provider with this name. Its address and key are replaced: choose another name to keep both.`
              : t`Models are named after it: ${name || kind.name}/MODEL.`
          }
        >
          {(control) => (
            <Input
              {...control}
              className="mono"
              spellCheck={false}
              autoComplete="off"
              value={name}
              required
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
      )}
      <ProblemNote error={others.error} />
      {kind.environment_key && onEnvironment && (
        <p className="quiet">
          <Trans>The environment of this installation has a key of {kind.title}.</Trans>{" "}
          <button type="button" className="btn small" onClick={onEnvironment}>
            <Trans>Use that key</Trans>
          </button>
        </p>
      )}
      {isNotAccepted ? (
        <div role="alert">
          <b>
            <Trans>This address is not accepted yet.</Trans>
          </b>
          <AcceptNote address={address.trim() || kind.default_address} />
        </div>
      ) : (
        <ProblemNote error={store.error} />
      )}
      <div ref={actions} className={styles.actions}>
        <Button kind="primary" type="submit" disabled={store.isPending}>
          {store.isPending ? t`Storing…` : stored ? t`Store` : t`Continue`}
        </Button>
        <Button kind="plain" onClick={onCancel}>
          {stored ? t`Cancel` : t`Back`}
        </Button>
      </div>
    </form>
  );
}
