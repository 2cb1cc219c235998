import { i18n } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { latestNotificationsQuery, type Notification } from "@/shared/api/notifications";
import { useNavigate } from "@/shared/routing/routing";
import { showBrowserNotification, useBrowserNotifications } from "@/shared/ui/browser-notifications";
import { Dialog } from "@/shared/ui/dialog";
import { lazyView } from "@/shared/ui/lazy-view";
import { Failure } from "@/shared/ui/loaded";
import { EVENT_TEXTS } from "./event-texts";
import styles from "./notification-bell.module.css";

const NotificationList = lazyView(
  msg`the notifications`,
  async () => (await import("./notification-list")).NotificationList,
);

/** The largest number of unread notifications that is shown. The server counts one more. */
const MAX_SHOWN = 99;

interface NotificationBellProps {
  icon: ReactNode;
  className: string;
  /** Whether the list opens from the bottom edge, as on a phone. */
  isSheet: boolean;
}

/** Opens the notifications, and shows how many are unread. The server stores them, so every browser shows the same. */
export function NotificationBell({ icon, className, isSheet }: NotificationBellProps) {
  const [isOpen, setOpen] = useState(false);
  const isOn = useBrowserNotifications() === "on";
  const latest = useQuery(latestNotificationsQuery(isOn));
  useBrowserNews(latest.data?.items, isOn);
  const unread = latest.data ? latest.data.unread_count : 0;
  const name = describeUnread(unread);
  return (
    <>
      <button
        type="button"
        className={`${className} ${styles.bell}`}
        aria-haspopup="dialog"
        aria-label={name}
        title={name}
        onClick={() => setOpen(true)}
      >
        {icon}
        {unread > 0 && <span className={styles.count}>{unread > MAX_SHOWN ? `${MAX_SHOWN}+` : unread}</span>}
      </button>
      <Dialog sheet={isSheet} open={isOpen} onClose={() => setOpen(false)} title={t`Notifications`}>
        <Failure query={latest} />
        <NotificationList onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

function describeUnread(unread: number): string {
  if (unread === 0) return t`Notifications`;
  if (unread > MAX_SHOWN) return t`More than ${MAX_SHOWN} unread notifications`;
  return plural(unread, { one: "# unread notification", other: "# unread notifications" });
}

/** Show what is new as notifications of the browser while the tab is hidden. */
function useBrowserNews(items: readonly Notification[] | undefined, isOn: boolean): void {
  const navigate = useNavigate();
  const newest = useRef<string | null>(null);
  useEffect(() => {
    if (!items) return;
    const known = newest.current;
    newest.current = items[0]?.created_at ?? known ?? "";
    if (known === null || !isOn || !document.hidden) return;
    for (const item of items.filter((one) => one.created_at > known && !one.read_at)) {
      showBrowserNotification(item.id, i18n._(EVENT_TEXTS[item.kind].text), item.title, () =>
        navigate({ to: "/runs/$runId", params: { runId: item.run_id }, search: {} }),
      );
    }
  }, [items, isOn, navigate]);
}
