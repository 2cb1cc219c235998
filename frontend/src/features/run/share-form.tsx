import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type CreatedShare, createShare, revokeShare, type Share, sharesQuery } from "@/shared/api/shares";
import { isLoopback } from "@/shared/format/loopback";
import { formatAgo, formatDateTime } from "@/shared/format/numbers";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { CopyButton } from "@/shared/ui/copy-button";
import { Checkbox, Field, Input, Select } from "@/shared/ui/field";
import { useNow } from "@/shared/ui/hooks";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./share-form.module.css";

const PERIODS_DAYS = [1, 7, 30, 90, 365] as const;
const DEFAULT_DAYS = 30;

interface ShareFormProps {
  runId: string;
  onClose(): void;
}

/** Creates a link to the report, and lists and revokes the links of the run. */
export function ShareForm({ runId, onClose }: ShareFormProps) {
  const client = useQueryClient();
  const [days, setDays] = useState<number>(DEFAULT_DAYS);
  const [label, setLabel] = useState("");
  const [showsQuestion, setShowsQuestion] = useState(true);
  const create = useMutation({
    mutationFn: () => createShare(runId, { days, label, shows_question: showsQuestion }),
    onSuccess: () => {
      setLabel("");
      return client.invalidateQueries({ queryKey: ["shares"] });
    },
  });
  return (
    <div className={styles.form}>
      <p>
        <Trans>
          Anyone who has the link can read the report, its quotes and its list of sources, without an account. They see
          the report as it is now: a later version needs a new link. They do not see the run, your library or other
          reports.
        </Trans>
      </p>
      {isLoopback(location.hostname) && (
        <p className={styles.unreachable}>
          <Trans>
            A link begins with the address of this page, <bdi>{location.origin}</bdi>, which opens only on this
            computer. To share with others, open this page at an address that they can reach and create the link there:
            the documentation on deployment describes a server for others. Or export the report and send the file.
          </Trans>
        </p>
      )}
      <div className={styles.fields}>
        <Field label={t`Expires after`}>
          {(control) => (
            <Select {...control} value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {PERIODS_DAYS.map((period) => (
                <option key={period} value={period}>
                  {plural(period, { one: "# day", other: "# days" })}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={t`Label`} description={t`For you only, such as who gets the link.`}>
          {(control) => (
            <Input
              {...control}
              dir="auto"
              maxLength={200}
              value={label}
              onChange={(event) => setLabel(event.target.value)}
            />
          )}
        </Field>
      </div>
      <Checkbox label={t`Show the question`} checked={showsQuestion} onChange={setShowsQuestion} />
      <ProblemNote error={create.error} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Done</Trans>
        </Button>
        <Button kind="primary" disabled={create.isPending} onClick={() => create.mutate()}>
          {create.isPending ? t`Creating the link…` : t`Create a link`}
        </Button>
      </div>
      {create.data && <CreatedLink key={create.data.token} created={create.data} />}
      <ShareList runId={runId} />
    </div>
  );
}

/** The address of a new link, which the server cannot show again. */
function CreatedLink({ created }: { created: CreatedShare }) {
  const address = `${location.origin}${created.path}`;
  return (
    <div className={styles.created} role="status">
      <Field label={t`Link`} description={t`Copy it now. Only its hash is stored, so it cannot be shown again.`}>
        {(control) => (
          <Input
            {...control}
            readOnly
            className={styles.address}
            value={address}
            onFocus={(event) => event.target.select()}
          />
        )}
      </Field>
      <CopyButton text={address}>
        <Trans>Copy the link</Trans>
      </CopyButton>
    </div>
  );
}

function ShareList({ runId }: { runId: string }) {
  const shares = useInfiniteQuery(sharesQuery(runId));
  return (
    <Loaded query={shares} label={t`the links`}>
      {({ pages }) => {
        const items = pages.flatMap((page) => page.items);
        if (items.length === 0) return null;
        return (
          <section className={styles.links} aria-label={t`Links of this run`}>
            <h3 className="label">
              <Trans>Links of this run</Trans>
            </h3>
            <ul>
              {items.map((share) => (
                <ShareItem key={share.id} share={share} />
              ))}
            </ul>
            <LoadMore query={shares} text={t`Load more links`} />
          </section>
        );
      }}
    </Loaded>
  );
}

function ShareItem({ share }: { share: Share }) {
  const client = useQueryClient();
  const now = useNow(60_000);
  const revoke = useMutation({
    mutationFn: () => revokeShare(share.id),
    onSuccess: () => client.invalidateQueries({ queryKey: ["shares"] }),
  });
  const name = share.label || t`Link of ${formatDateTime(share.created_at, "short")}`;
  return (
    <li className={styles.link}>
      <span>
        <b dir="auto">{name}</b>
        <small>{describeUse(share, now)}</small>
      </span>
      <StateBadge share={share} />
      {share.state === "open" && (
        <Button
          small
          kind="danger"
          disabled={revoke.isPending}
          aria-label={t`Revoke ${name}`}
          onClick={() => revoke.mutate()}
        >
          <Trans>Revoke</Trans>
        </Button>
      )}
      <ProblemNote error={revoke.error} />
    </li>
  );
}

function StateBadge({ share }: { share: Share }) {
  if (share.state === "open") {
    return (
      <Badge tone="moss">
        <Trans>open</Trans>
      </Badge>
    );
  }
  return <Badge>{share.state === "revoked" ? t`revoked` : t`expired`}</Badge>;
}

function describeUse(share: Share, now: number): string {
  const opened = share.last_opened_at
    ? t`opened ${plural(share.opened_count, { one: "# time", other: "# times" })}, last ${formatAgo(share.last_opened_at, now)}`
    : t`never opened`;
  const { version } = share;
  if (share.revoked_at) return t`Version ${version}, revoked ${formatDateTime(share.revoked_at, "short")}, ${opened}.`;
  const end = formatDateTime(share.expires_at, "short");
  return share.state === "open"
    ? t`Version ${version}, expires ${end}, ${opened}.`
    : t`Version ${version}, expired ${end}, ${opened}.`;
}
