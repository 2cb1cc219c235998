import { act, screen } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { type AnswerDraft, addDraftPart } from "@/shared/api/drafts";
import { aStep, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}`;

function aDraft(part: Partial<AnswerDraft> = {}): AnswerDraft {
  return {
    run_id: RUN_ID,
    call_id: "1/planner/0/ab",
    attempt: 1,
    role: "planner",
    label: "plan",
    is_unverified: false,
    offset: 0,
    text: "First ",
    ...part,
  };
}

test("a draft grows until it is withdrawn", async () => {
  const { sources } = renderPage(ADDRESS);
  await screen.findByText("How does undici reuse connections?");
  act(() => {
    sources[0]?.send("draft", aDraft());
    sources[0]?.send("draft", aDraft({ offset: 6, text: "look at pools" }));
  });
  expect(await screen.findByText("First look at pools")).toBeVisible();
  expect(screen.queryByText(/unverified/)).toBeNull();
  act(() => {
    sources[0]?.send("step", aStep(1));
    sources[0]?.send("draft_end", { run_id: RUN_ID, call_id: "1/planner/0/ab" });
  });
  await screen.findByText("Step number 1");
  expect(screen.queryByText("First look at pools")).toBeNull();
});

test("the text of a report is marked as unverified, and its status is announced politely", async () => {
  const { sources } = renderPage(ADDRESS);
  await screen.findByText("How does undici reuse connections?");
  act(() => sources[0]?.send("draft", aDraft({ label: "write", is_unverified: true, attempt: 2 })));
  const label = (await screen.findByText(/unverified until it is checked/)).parentElement;
  expect(label).toHaveAttribute("aria-live", "polite");
  expect(label).toHaveTextContent("write · being written · attempt 2");
});

test("a page that opens late shows the draft so far", async () => {
  server.use(http.get(at("/runs/:id/drafts"), () => HttpResponse.json({ items: [aDraft({ text: "So far" })] })));
  renderPage(ADDRESS);
  expect(await screen.findByText("So far")).toBeVisible();
});

test("text that the page has missed is fetched", async () => {
  const { sources } = renderPage(ADDRESS);
  await screen.findByText("How does undici reuse connections?");
  server.use(
    http.get(at("/runs/:id/drafts"), () => HttpResponse.json({ items: [aDraft({ text: "First and last" })] })),
  );
  act(() => sources[0]?.send("draft", aDraft({ offset: 10, text: "last" })));
  expect(await screen.findByText("First and last")).toBeVisible();
});

test("another attempt replaces the text, and offsets count code points", () => {
  const first = addDraftPart([], aDraft({ text: "😀" })) ?? [];
  const longer = addDraftPart(first, aDraft({ offset: 1, text: "!" })) ?? [];
  expect(longer.map((draft) => draft.text)).toEqual(["😀!"]);
  expect(addDraftPart(longer, aDraft({ attempt: 2, text: "again" }))?.map((draft) => draft.text)).toEqual(["again"]);
  expect(addDraftPart(longer, aDraft({ attempt: 2, offset: 2, text: "x" }))).toBeNull();
});
