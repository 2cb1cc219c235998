import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Share, SharedReport } from "@/shared/api/shares";
import { aReport, aRun, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const TOKEN = `ofs_${"A".repeat(43)}`;

function aShare(part: Partial<Share> = {}): Share {
  return {
    id: "00000000-0000-4000-8000-000000000021",
    run_id: RUN_ID,
    version: 1,
    report_title: "Client",
    label: "For the board",
    shows_question: true,
    state: "open",
    created_at: "2026-03-01T10:00:00Z",
    expires_at: "2026-03-31T10:00:00Z",
    revoked_at: null,
    last_opened_at: null,
    opened_count: 0,
    ...part,
  };
}

function aSharedReport(part: Partial<SharedReport> = {}): SharedReport {
  const { run_id: _, revision: __, follow_up: ___, citations, sources, ...rest } = aReport();
  return {
    ...rest,
    question: "How does undici reuse connections?",
    citations: citations.map(({ number, title, quote, verified, source, position, position_texts }) => ({
      ...{ number, title, quote, verified, source, position, position_texts },
      erased: false,
    })),
    sources: sources.map(({ id, title, site, author, published, description, citations: numbers }) => ({
      ...{ id, title, site, author, published, description },
      citations: numbers,
      retrieved_at: null,
      url: "javascript:window.attacked=1",
    })),
    expires_at: "2026-03-31T10:00:00Z",
    ...part,
  };
}

function serveReport(): void {
  const done = { status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z" } as const;
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ ...done, last_seq: 1, step_marks: "w" }))));
}

test("a link is created, can be copied, and is listed with its openings", async () => {
  serveReport();
  const sent: unknown[] = [];
  let listed: Share[] = [];
  server.use(
    http.get(at("/runs/:id/shares"), () => HttpResponse.json({ items: listed, next: null })),
    http.post(at("/runs/:id/shares"), async ({ request }) => {
      sent.push(await request.json());
      listed = [aShare({ opened_count: 2, last_opened_at: "2026-03-02T10:00:00Z" })];
      const created = { share: listed[0], token: TOKEN, path: `/shared/${TOKEN}` };
      return HttpResponse.json(created, { status: 201 });
    }),
  );
  const { user } = renderPage(`/runs/${RUN_ID}?tab=report`);
  await user.click(await screen.findByRole("button", { name: "Share" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Share this report" }));
  expect(await dialog.findByText(/opens only on this computer/)).toHaveTextContent(location.origin);
  await user.selectOptions(await dialog.findByLabelText("Expires after"), "7");
  await user.type(dialog.getByLabelText("Label"), "For the board");
  await user.click(dialog.getByLabelText("Show the question"));
  await user.click(dialog.getByRole("button", { name: "Create a link" }));
  expect(await dialog.findByLabelText("Link")).toHaveValue(`${location.origin}/shared/${TOKEN}`);
  expect(sent).toEqual([{ days: 7, label: "For the board", shows_question: false }]);
  expect(await dialog.findByText("For the board")).toBeVisible();
  expect(dialog.getByText(/opened 2 times/)).toBeVisible();
});

test("a link is revoked", async () => {
  serveReport();
  let share = aShare();
  server.use(
    http.get(at("/runs/:id/shares"), () => HttpResponse.json({ items: [share], next: null })),
    http.delete(at("/shares/:id"), () => {
      share = aShare({ state: "revoked", revoked_at: "2026-03-02T10:00:00Z" });
      return new HttpResponse(null, { status: 204 });
    }),
  );
  const { user } = renderPage(`/runs/${RUN_ID}?tab=report`);
  await user.click(await screen.findByRole("button", { name: "Share" }));
  await user.click(await screen.findByRole("button", { name: "Revoke For the board" }));
  expect(await screen.findByText("revoked")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Revoke For the board" })).toBeNull();
});

test("a reader without a session sees the report, its quotes and sources, and no navigation", async () => {
  const asked: string[] = [];
  server.use(
    http.get(at("/session"), () => {
      asked.push("session");
      return problem(401, "Unauthorized");
    }),
    http.get(at("/shared/:token"), ({ params }) => {
      asked.push(String(params.token));
      return HttpResponse.json(aSharedReport());
    }),
  );
  renderPage(`/shared/${TOKEN}`);
  expect(await screen.findByRole("heading", { level: 1 })).toHaveTextContent(aReport().title);
  expect(screen.getByText("How does undici reuse connections?")).toBeVisible();
  const number = aReport().citations[0]?.number;
  expect(screen.getAllByRole("link", { name: `Citation ${number}` })[0]).toHaveAttribute("href", `#citation-${number}`);
  expect(document.getElementById(`citation-${number}`)).toHaveTextContent(aReport().citations[0]?.quote ?? "");
  expect(screen.queryByRole("navigation", { name: "Main" })).toBeNull();
  expect(screen.getByRole("link", { name: "PDF" })).toHaveAttribute(
    "href",
    `/api/v1/shared/${TOKEN}/export?format=pdf`,
  );
  expect(asked).toEqual([TOKEN]);
  expect(document.querySelector('a[href^="javascript:"]')).toBeNull();
});

test("a link that ended says what a reader can do", async () => {
  server.use(http.get(at("/shared/:token"), () => problem(404, "Not Found")));
  renderPage("/shared/x");
  expect(await screen.findByText("This link does not work")).toBeVisible();
});
