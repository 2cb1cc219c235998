import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type ApiKey, apiKeysQuery, createApiKey, revokeApiKey } from "@/shared/api/settings";
import { formatAgo, formatDateTime } from "@/shared/format/numbers";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { CopyButton } from "@/shared/ui/copy-button";
import { Dialog } from "@/shared/ui/dialog";
import { EmptyState } from "@/shared/ui/empty-state";
import { Field, Input, Select } from "@/shared/ui/field";
import { useNow } from "@/shared/ui/hooks";
import { Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./installation.module.css";

/** What each key begins with. */
const KEY_PREFIX = "ofg_";

/** Keys for programs that use the API. */
export function KeysSection() {
  const keys = useQuery(apiKeysQuery);
  return (
    <div className={styles.stack}>
      <p className={styles.intro}>
        <Trans>
          A program that uses the API sends a key. A key can do what you can do with your runs and documents. It cannot
          create keys or change the installation.
        </Trans>
      </p>
      <NewKey />
      <Loaded query={keys} label={t`the keys`} empty={describeNoKeys}>
        {(listed) => <KeyLists keys={listed} />}
      </Loaded>
    </div>
  );
}

function describeNoKeys(keys: readonly ApiKey[]) {
  if (keys.length > 0) return null;
  return (
    <EmptyState title={t`There are no keys`}>
      <Trans>Name the program that will use the key, such as “nightly export”, and create one.</Trans>
    </EmptyState>
  );
}

function NewKey() {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const create = useMutation({
    mutationFn: () => createApiKey(name.trim(), days === "" ? null : Number(days)),
    onSuccess: () => {
      setName("");
      return client.invalidateQueries({ queryKey: apiKeysQuery.queryKey });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim()) create.mutate();
  };
  return (
    <Panel title={t`New key`} level={3}>
      <form className={styles.inline} onSubmit={submit}>
        <Field label={t`Where it is used`}>
          {(control) => (
            <Input
              {...control}
              dir="auto"
              maxLength={100}
              value={name}
              placeholder={t`nightly export`}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field label={t`Valid for`}>
          {(control) => (
            <Select {...control} value={days} onChange={(event) => setDays(event.target.value)}>
              <option value="7">{t`7 days`}</option>
              <option value="90">{t`90 days`}</option>
              <option value="365">{t`1 year`}</option>
              <option value="">{t`until it is revoked`}</option>
            </Select>
          )}
        </Field>
        <Button type="submit" kind="primary" disabled={!name.trim() || create.isPending}>
          {create.isPending ? t`Creating…` : t`Create key`}
        </Button>
      </form>
      <ProblemNote error={create.error} />
      {create.data && <CreatedKey value={create.data.key} onClose={create.reset} />}
    </Panel>
  );
}

/** The secret is only here. Closing the dialog drops it from the page. */
function CreatedKey({ value, onClose }: { value: string; onClose(): void }) {
  return (
    <Dialog open onClose={onClose} title={t`Your new key`}>
      <p>
        <Trans>Copy it now. It cannot be shown again.</Trans>
      </p>
      <p className={styles.code} dir="ltr">
        {value}
      </p>
      <div className="actions">
        <CopyButton text={value}>
          <Trans>Copy</Trans>
        </CopyButton>
        <Button kind="primary" onClick={onClose}>
          <Trans>Done</Trans>
        </Button>
      </div>
    </Dialog>
  );
}

function isUsable(key: ApiKey, now: number): boolean {
  return key.revoked_at === null && (key.expires_at === null || Date.parse(key.expires_at) > now);
}

function KeyLists({ keys }: { keys: readonly ApiKey[] }) {
  const now = useNow(60_000);
  const newestFirst = [...keys].reverse();
  const usable = newestFirst.filter((key) => isUsable(key, now));
  const ended = newestFirst.filter((key) => !isUsable(key, now));
  return (
    <>
      {usable.length > 0 && (
        <Panel title={t`Valid keys`} level={3}>
          <KeyList keys={usable} now={now} />
        </Panel>
      )}
      {ended.length > 0 && (
        <details>
          <summary>
            <Trans>Revoked and expired keys</Trans>
          </summary>
          <KeyList keys={ended} now={now} />
        </details>
      )}
    </>
  );
}

function KeyList({ keys, now }: { keys: readonly ApiKey[]; now: number }) {
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  return (
    <>
      <ul className={styles.list}>
        {keys.map((key) => (
          <KeyRow key={key.id} apiKey={key} now={now} onRevoke={() => setRevoking(key)} />
        ))}
      </ul>
      {revoking && <RevokeDialog apiKey={revoking} onClose={() => setRevoking(null)} />}
    </>
  );
}

function KeyRow({ apiKey, now, onRevoke }: { apiKey: ApiKey; now: number; onRevoke(): void }) {
  const { id, name, created_at, expires_at, last_used_at, revoked_at } = apiKey;
  return (
    <li className={styles.row}>
      <div className={styles.head}>
        <span className={styles.name} dir="auto">
          {name}
        </span>
        <span className={styles.code}>{`${KEY_PREFIX}${id}_…`}</span>
        {revoked_at !== null && <Badge>{t`revoked`}</Badge>}
        {revoked_at === null && !isUsable(apiKey, now) && <Badge>{t`expired`}</Badge>}
        {isUsable(apiKey, now) && (
          <Button small aria-label={t`Revoke ${name}`} onClick={onRevoke}>
            <Trans>Revoke</Trans>
          </Button>
        )}
      </div>
      <span className={styles.note}>
        {last_used_at === null ? t`Never used` : t`Last used ${formatAgo(last_used_at, now)}`}
        {" · "}
        <Trans>created {formatAgo(created_at, now)}</Trans>
        {expires_at !== null && (
          <>
            {" · "}
            <Trans>expires {formatDateTime(expires_at, "short")}</Trans>
          </>
        )}
      </span>
    </li>
  );
}

function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose(): void }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeApiKey(apiKey.id),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: apiKeysQuery.queryKey });
      onClose();
    },
  });
  return (
    <Dialog open onClose={onClose} title={t`Revoke ${apiKey.name}?`}>
      <p>
        <Trans>Requests with this key fail within 5 seconds. It cannot be undone.</Trans>
      </p>
      <ProblemNote error={revoke.error} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
        <Button kind="danger" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
          {revoke.isPending ? t`Revoking…` : t`Revoke`}
        </Button>
      </div>
    </Dialog>
  );
}
