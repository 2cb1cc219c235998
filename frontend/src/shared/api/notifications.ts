/** Notifications of runs, and the webhooks of the tenant. */

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Notification = Schemas["NotificationOut"];
export type EventKind = Notification["kind"];
export type Webhook = Schemas["WebhookOut"];
export type WebhookRequest = Schemas["WebhookIn"];
export type CreatedWebhook = Schemas["CreatedWebhookOut"];
export type WebhookAttempt = Schemas["WebhookAttemptOut"];

const POLL_MS = 15_000;

/** The latest notifications with the number of unread ones. `inBackground` also asks while the tab is hidden. */
export function latestNotificationsQuery(inBackground: boolean) {
  return queryOptions({
    queryKey: ["notifications", "latest"],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/notifications", { params: { query: { limit: 20 } }, signal })),
    refetchInterval: POLL_MS,
    refetchIntervalInBackground: inBackground,
  });
}

export const notificationsQuery = infiniteQueryOptions({
  queryKey: ["notifications", "list"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      api.GET("/api/v1/notifications", { params: { query: { cursor: pageParam ?? undefined, limit: 20 } }, signal }),
    ),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next,
});

/** Mark a notification as read, or all up to a moment if `id` is `null`. */
export async function readNotifications(id: string | null, until: string | null): Promise<void> {
  await unwrap(api.POST("/api/v1/notifications/read", { body: { id, until } }));
}

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/webhooks", { signal })),
});

export function addWebhook(body: WebhookRequest) {
  return unwrap(api.POST("/api/v1/webhooks", { body }));
}

export async function deleteWebhook(id: string): Promise<void> {
  await unwrap(api.DELETE("/api/v1/webhooks/{webhook_id}", { params: { path: { webhook_id: id } } }));
}

export function tryWebhook(id: string) {
  return unwrap(api.POST("/api/v1/webhooks/{webhook_id}/test", { params: { path: { webhook_id: id } } }));
}

export function webhookAttemptsQuery(id: string) {
  return queryOptions({
    queryKey: ["webhook-attempts", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/webhooks/{webhook_id}/attempts", { params: { path: { webhook_id: id } }, signal })),
  });
}
