import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  addWebhook,
  type CreatedWebhook,
  deleteWebhook,
  type EventKind,
  tryWebhook,
  type Webhook,
  webhookAttemptsQuery,
  webhooksQuery,
} from "@/shared/api/notifications";
import { joinParts } from "@/shared/format/lists";
import { formatDateTime, formatMs } from "@/shared/format/numbers";
import { setBrowserNotifications, useBrowserNotifications } from "@/shared/ui/browser-notifications";
import { Button } from "@/shared/ui/button";
import { CopyButton } from "@/shared/ui/copy-button";
import { Checkbox, Field, Input } from "@/shared/ui/field";
import { Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./notifications-section.module.css";

// Not translated: an address.
const EXAMPLE_ADDRESS = "https://hooks.example/offing";

const EVENTS: Record<EventKind, ReturnType<typeof msg>> = {
  "run.waiting": msg`A run waits for you`,
  "run.done": msg`A run has ended with a result`,
  "run.failed": msg`A run has failed`,
  "run.cancelled": msg`A run was cancelled`,
};
const EVENT_KINDS = Object.keys(EVENTS) as EventKind[];

/** Notifications of this browser, and webhooks of the tenant. */
export function NotificationsSection() {
  return (
    <div className={styles.section}>
      <BrowserPanel />
      <WebhooksPanel />
    </div>
  );
}

function BrowserPanel() {
  const state = useBrowserNotifications();
  const change = useMutation({ mutationFn: setBrowserNotifications });
  const notes = {
    on: t`They are shown while this page is open in a tab that you do not see.`,
    off: t`The browser asks for permission when you turn them on.`,
    denied: t`The browser does not allow them. Change this in the browser’s settings of this page.`,
    unsupported: t`This browser shows no notifications for this page. They need HTTPS or this machine’s own address.`,
  };
  return (
    <Panel title={t`This browser`}>
      <Checkbox
        label={t`Notify me when a run waits for me, ends or fails`}
        description={notes[state]}
        checked={state === "on"}
        disabled={change.isPending || state === "denied" || state === "unsupported"}
        onChange={(isOn) => change.mutate(isOn)}
      />
      <ProblemNote error={change.error} />
    </Panel>
  );
}

function WebhooksPanel() {
  const webhooks = useQuery(webhooksQuery);
  return (
    <Panel title={t`Webhooks`}>
      <p>
        <Trans>
          Offing sends a signed message to each address when one of its events happens. It has the ids, the state and
          the title of the run, and no text of its report. A message may arrive more than once, with the same id.
        </Trans>
      </p>
      <Loaded query={webhooks} label={t`the webhooks`}>
        {(rows) => (
          <ul>
            {rows.map((webhook) => (
              <WebhookItem key={webhook.id} webhook={webhook} />
            ))}
          </ul>
        )}
      </Loaded>
      <WebhookForm />
    </Panel>
  );
}

function WebhookItem({ webhook }: { webhook: Webhook }) {
  const client = useQueryClient();
  const [showsAttempts, setShowsAttempts] = useState(false);
  const trial = useMutation({ mutationFn: () => tryWebhook(webhook.id) });
  const remove = useMutation({
    mutationFn: () => deleteWebhook(webhook.id),
    onSuccess: () => client.invalidateQueries({ queryKey: webhooksQuery.queryKey }),
  });
  const { address } = webhook;
  return (
    <li className={styles.webhook}>
      <b className={styles.address}>{address}</b>
      <small>{joinParts(webhook.events.map((kind) => i18n._(EVENTS[kind])))}</small>
      <span className={styles.actions}>
        <Button small disabled={trial.isPending} aria-label={t`Test ${address}`} onClick={() => trial.mutate()}>
          {trial.isPending ? t`Sending…` : t`Test`}
        </Button>
        <Button small aria-expanded={showsAttempts} onClick={() => setShowsAttempts(!showsAttempts)}>
          <Trans>Deliveries</Trans>
        </Button>
        <Button
          small
          kind="danger"
          disabled={remove.isPending}
          aria-label={t`Remove ${address}`}
          onClick={() => remove.mutate()}
        >
          <Trans>Remove</Trans>
        </Button>
      </span>
      {trial.data && (
        <p role="status" className={trial.data.problem ? styles.problem : undefined}>
          {trial.data.problem ? trial.data.problem : t`The message was accepted.`}
        </p>
      )}
      <ProblemNote error={trial.error ?? remove.error} />
      {showsAttempts && <Attempts id={webhook.id} />}
    </li>
  );
}

function Attempts({ id }: { id: string }) {
  const attempts = useQuery(webhookAttemptsQuery(id));
  return (
    <Loaded
      query={attempts}
      label={t`the deliveries`}
      empty={(rows) => (rows.length ? null : <p className="quiet">{t`Nothing was sent yet.`}</p>)}
    >
      {(rows) => (
        <ol className={styles.attempts}>
          {rows.map((one) => (
            <li key={`${one.event_id} ${one.number}`}>
              <span>
                {i18n._(EVENTS[one.kind])}, {formatDateTime(one.at, "medium")}
              </span>
              <span className={one.problem ? styles.problem : undefined}>
                {one.problem || t`delivered in ${formatMs(one.ms)}`}
              </span>
              {one.next_attempt_at && (
                <span className="quiet">{t`next attempt ${formatDateTime(one.next_attempt_at, "medium")}`}</span>
              )}
            </li>
          ))}
        </ol>
      )}
    </Loaded>
  );
}

function WebhookForm() {
  const client = useQueryClient();
  const [address, setAddress] = useState("");
  const [events, setEvents] = useState<readonly EventKind[]>(["run.waiting", "run.done", "run.failed"]);
  const add = useMutation({
    mutationFn: () => addWebhook({ address: address.trim(), events: [...events], web_ui: location.origin }),
    onSuccess: () => {
      setAddress("");
      return client.invalidateQueries({ queryKey: webhooksQuery.queryKey });
    },
  });
  const toggle = (kind: EventKind, isChosen: boolean) =>
    setEvents(EVENT_KINDS.filter((one) => (one === kind ? isChosen : events.includes(one))));
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate();
      }}
    >
      <Field label={t`Address`} description={t`A public address, or one that the operator allows for webhooks.`}>
        {(control) => (
          <Input
            {...control}
            type="url"
            required
            placeholder={EXAMPLE_ADDRESS}
            value={address}
            onChange={(event) => setAddress(event.target.value)}
          />
        )}
      </Field>
      <fieldset className={styles.events}>
        <legend>
          <Trans>Events</Trans>
        </legend>
        {EVENT_KINDS.map((kind) => (
          <Checkbox
            key={kind}
            label={i18n._(EVENTS[kind])}
            checked={events.includes(kind)}
            onChange={(isChosen) => toggle(kind, isChosen)}
          />
        ))}
      </fieldset>
      <ProblemNote error={add.error} />
      <div>
        <Button type="submit" kind="primary" disabled={add.isPending || events.length === 0}>
          <Trans>Add a webhook</Trans>
        </Button>
      </div>
      {add.data && <Secret key={add.data.webhook.id} created={add.data} />}
    </form>
  );
}

/** The secret of a new webhook, which the server cannot show again. */
function Secret({ created }: { created: CreatedWebhook }) {
  return (
    <div className={styles.secret} role="status">
      <Field label={t`Secret`} description={t`It signs each message. Copy it now: it cannot be shown again.`}>
        {(control) => <Input {...control} readOnly value={created.secret} onFocus={(event) => event.target.select()} />}
      </Field>
      <CopyButton text={created.secret}>
        <Trans>Copy the secret</Trans>
      </CopyButton>
    </div>
  );
}
