import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { type Notification, notificationsQuery, readNotifications } from "@/shared/api/notifications";
import { formatAgo } from "@/shared/format/numbers";
import { Link } from "@/shared/routing/routing";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { EmptyState } from "@/shared/ui/empty-state";
import { useNow } from "@/shared/ui/hooks";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { EVENT_TEXTS } from "./event-texts";
import styles from "./notification-list.module.css";

/** Runs that wait for a person, have ended or have failed, newest first. Opening a run marks its notification as read. */
export function NotificationList({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const list = useInfiniteQuery(notificationsQuery);
  const read = useMutation({
    mutationFn: ({ id, until }: { id: string | null; until: string | null }) => readNotifications(id, until),
    onSuccess: () => client.invalidateQueries({ queryKey: ["notifications"] }),
  });
  const newest = list.data?.pages[0]?.items[0]?.created_at;
  const empty = (
    <EmptyState title={t`No notifications yet`}>
      <Trans>A run that waits for you, ends or fails is listed here for 90 days.</Trans>
    </EmptyState>
  );
  return (
    <div className={styles.list}>
      <Loaded query={list} label={t`the notifications`} empty={({ pages }) => (pages[0]?.items.length ? null : empty)}>
        {({ pages }) => (
          <div className={styles.scroll}>
            <ul>
              {pages
                .flatMap((page) => page.items)
                .map((item) => (
                  <Item
                    key={item.id}
                    item={item}
                    onOpen={() => {
                      read.mutate({ id: item.id, until: null });
                      onClose();
                    }}
                  />
                ))}
            </ul>
            <LoadMore query={list} text={t`Load older notifications`} />
          </div>
        )}
      </Loaded>
      <ProblemNote error={read.error} />
      <div className={`actions ${styles.actions}`}>
        <Link to="/settings/$section" params={{ section: "notifications" }} onClick={onClose}>
          <Trans>Settings</Trans>
        </Link>
        {newest && (
          <Button disabled={read.isPending} onClick={() => read.mutate({ id: null, until: newest })}>
            <Trans>Mark all as read</Trans>
          </Button>
        )}
        <Button kind="primary" onClick={onClose}>
          <Trans>Done</Trans>
        </Button>
      </div>
    </div>
  );
}

function Item({ item, onOpen }: { item: Notification; onOpen(): void }) {
  const now = useNow(60_000);
  const { text, tone } = EVENT_TEXTS[item.kind];
  return (
    <li>
      <Link
        to="/runs/$runId"
        params={{ runId: item.run_id }}
        search={{}}
        className={item.read_at ? styles.item : `${styles.item} ${styles.unread}`}
        onClick={onOpen}
      >
        <span className={styles.head}>
          <Badge tone={tone}>{i18n._(text)}</Badge>
          <small>{formatAgo(item.created_at, now)}</small>
        </span>
        <span dir="auto" className={styles.title}>
          {item.title}
        </span>
        {!item.read_at && (
          <span className="visually-hidden">
            <Trans>unread</Trans>
          </span>
        )}
      </Link>
    </li>
  );
}
