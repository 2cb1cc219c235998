import { readFileSync } from "node:fs";
import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Notification, Webhook } from "@/shared/api/notifications";
import { RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const notificationStyles = readFileSync("src/features/notifications/notification-list.module.css", "utf8");

function aNotification(part: Partial<Notification> = {}): Notification {
  return {
    id: "00000000-0000-4000-8000-000000000031",
    kind: "run.waiting",
    run_id: RUN_ID,
    title: "How does undici reuse connections?",
    created_at: "2026-03-01T10:00:00Z",
    read_at: null,
    request: 3,
    ...part,
  };
}

function serveNotifications(items: Notification[], unread = 2): unknown[] {
  const read: unknown[] = [];
  server.use(
    http.get(at("/notifications"), () => HttpResponse.json({ items, next: null, unread_count: unread })),
    http.post(at("/notifications/read"), async ({ request }) => {
      read.push(await request.json());
      return new HttpResponse(null, { status: 204 });
    }),
  );
  return read;
}

test("the bell shows how many notifications are unread, and a run that is opened is marked as read", async () => {
  const read = serveNotifications([aNotification(), aNotification({ id: "2", kind: "run.failed", title: "Other" })]);
  const { user, router } = renderPage("/runs");
  await user.click(await screen.findByRole("button", { name: "2 unread notifications" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Notifications" }));
  expect(await dialog.findByText("Run failed")).toBeVisible();
  await user.click(await dialog.findByRole("link", { name: /Waits for you/ }));
  expect(router.state.location.pathname).toBe(`/runs/${RUN_ID}`);
  expect(read).toEqual([{ id: aNotification().id, until: null }]);
});

test("of many notifications only the list scrolls, and the bell says that there are more than the server counts", async () => {
  serveNotifications(
    Array.from({ length: 20 }, (_, n) => aNotification({ id: `${n}`, title: `Question ${n}` })),
    100,
  );
  const { user } = renderPage("/runs");
  await user.click(await screen.findByRole("button", { name: "More than 99 unread notifications" }));
  const scrolls = (element: Element) => element.closest('[class*="scroll"]') !== null;
  expect(scrolls(await screen.findByRole("link", { name: /Question 19/ }))).toBe(true);
  expect(scrolls(screen.getByRole("button", { name: "Mark all as read" }))).toBe(false);
  expect(scrolls(screen.getByRole("button", { name: "Done" }))).toBe(false);
  expect(notificationStyles).toMatch(/\.scroll \{[^}]*max-height:[^}]*overflow-y: auto/);
});

test("all notifications that are listed are marked as read, and no later one", async () => {
  const read = serveNotifications([aNotification()]);
  const { user } = renderPage("/runs");
  await user.click(await screen.findByRole("button", { name: "2 unread notifications" }));
  await user.click(await screen.findByRole("button", { name: "Mark all as read" }));
  expect(read).toEqual([{ id: null, until: "2026-03-01T10:00:00Z" }]);
});

test("a webhook is added, shows its secret once, and is tried", async () => {
  const sent: unknown[] = [];
  let rows: Webhook[] = [];
  server.use(
    http.get(at("/webhooks"), () => HttpResponse.json(rows)),
    http.post(at("/webhooks"), async ({ request }) => {
      const body = (await request.json()) as Webhook;
      sent.push(body);
      const webhook = { ...body, id: "00000000-0000-4000-8000-000000000041", created_at: "2026-03-01T10:00:00Z" };
      rows = [webhook];
      return HttpResponse.json({ webhook, secret: "whsec_c2VjcmV0" }, { status: 201 });
    }),
    http.post(at("/webhooks/:id/test"), () =>
      HttpResponse.json({ status: 500, problem: "The server answers with status 500." }),
    ),
  );
  const { user } = renderPage("/settings/notifications");
  await user.type(await screen.findByLabelText("Address"), "https://hooks.example/offing");
  await user.click(screen.getByLabelText("A run has ended with a result"));
  await user.click(screen.getByRole("button", { name: "Add a webhook" }));
  expect(await screen.findByLabelText("Secret")).toHaveValue("whsec_c2VjcmV0");
  expect(sent).toEqual([
    { address: "https://hooks.example/offing", events: ["run.waiting", "run.failed"], web_ui: location.origin },
  ]);
  await user.click(await screen.findByRole("button", { name: "Test https://hooks.example/offing" }));
  expect(await screen.findByText("The server answers with status 500.")).toBeVisible();
});
