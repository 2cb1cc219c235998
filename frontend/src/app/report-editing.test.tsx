import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { readDraft } from "@/shared/ui/drafts";
import { aReport, aRun, aSentence, RUN_ID, steps, TEXT_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}?tab=report`;
const QUOTE = "Closing it ends all requests.";

/** An ended run with a report, and the edits that the page saves. */
function serveReport(report = aReport()) {
  const saved: Record<string, unknown>[] = [];
  server.use(
    http.get(at("/runs/:id"), () =>
      HttpResponse.json(
        aRun({
          status: "done",
          stop_reason: "answered",
          ended_at: "2026-03-01T10:01:00Z",
          last_seq: 2,
          step_marks: "nw",
          title: report.title,
        }),
      ),
    ),
    http.get(at("/runs/:id/steps"), () => HttpResponse.json({ items: steps(1, 2), next: null })),
    http.get(at("/runs/:id/report"), () => HttpResponse.json(report)),
    http.post(at("/runs/:id/report/versions"), async ({ request }) => {
      saved.push((await request.json()) as Record<string, unknown>);
      return HttpResponse.json(
        aReport({ version: 2, latest_version: 2, base_version: 1, edited_by: "web_ui", editor: "person" }),
        {
          status: 201,
        },
      );
    }),
  );
  return saved;
}

async function openEditor(address = ADDRESS) {
  const page = renderPage(address);
  await page.user.click(await screen.findByRole("button", { name: "Edit" }));
  const editor = await screen.findByRole("region", { name: "Edit the report" });
  return { ...page, editor };
}

test("a changed sentence is saved with the version that it is based on", async () => {
  const saved = serveReport();
  const { user, editor } = await openEditor();
  const field = within(editor).getByRole("textbox", { name: "Sentence 2" });
  await user.clear(field);
  await user.type(field, "It is often faster.");
  expect(within(editor).getByText(/1 sentence is new or changed/)).toBeVisible();
  await user.type(within(editor).getByRole("textbox", { name: "Note about this version" }), "Milder");
  await user.click(within(editor).getByRole("button", { name: "Save as a new version" }));
  await waitFor(() => expect(saved).toHaveLength(1));
  expect(saved[0]).toMatchObject({
    base_version: 1,
    latest_version: 1,
    note: "Milder",
    answer: { id: "s1", citations: [1] },
    sections: [{ heading: "Details", sentences: [{ id: "s2", text: "It is often faster." }] }],
  });
  expect(await screen.findByText("Saved as version 2.")).toBeVisible();
  expect(readDraft(`report-edit.${RUN_ID}`, null)).toBeNull();
});

test("unsaved changes survive a reload, and can be discarded", async () => {
  serveReport();
  const { user, editor, unmount } = await openEditor();
  await user.type(within(editor).getByRole("textbox", { name: "Sentence 2" }), " Really.");
  unmount();
  const again = renderPage(`${ADDRESS}&part=edit`);
  expect(await screen.findByDisplayValue("It is always faster. Really.")).toBeVisible();
  await again.user.click(screen.getByRole("button", { name: "Discard" }));
  expect(await screen.findByText("Your changes were discarded.")).toBeVisible();
  await again.user.click(
    within(screen.getByRole("region", { name: "Messages" })).getByRole("button", { name: "Undo" }),
  );
  expect(await screen.findByDisplayValue("It is always faster. Really.")).toBeVisible();
});

test("a conflict keeps the changes, shows the other version, and saves on top of it", async () => {
  const saved = serveReport();
  server.use(
    http.post(at("/runs/:id/report/versions"), () => problem(409, "Version 2 was saved by Ann."), { once: true }),
    http.get(at("/runs/:id/report/changes"), ({ request }) => {
      expect(new URL(request.url).search).toBe("?old=1&new=2");
      const answer = [
        { kind: "changed", text: "A pool keeps one connection.", before: "A client keeps one connection." },
      ];
      return HttpResponse.json({ answer, sections: [], kept_sections: 1, title_before: "" });
    }),
  );
  const { user, editor } = await openEditor();
  await user.type(within(editor).getByRole("textbox", { name: "Sentence 2" }), " Mine.");
  await user.click(within(editor).getByRole("button", { name: "Save as a new version" }));
  expect(await screen.findByText("Version 2 was saved by Ann.")).toBeVisible();
  expect(screen.getByDisplayValue("It is always faster. Mine.")).toBeVisible();
  server.use(http.get(at("/runs/:id/report"), () => HttpResponse.json(aReport({ version: 2, latest_version: 2 }))));
  await user.click(screen.getByRole("button", { name: "Show what the other version changed" }));
  expect((await screen.findByText("pool")).tagName).toBe("INS");
  await user.click(screen.getByRole("button", { name: "Save mine as version 3" }));
  await waitFor(() => expect(saved).toHaveLength(1));
  expect(saved[0]).toMatchObject({ base_version: 1, latest_version: 2 });
});

test("a citation is chosen from what the run has read, as whole sentences of a passage", async () => {
  const saved = serveReport();
  const passage = { text_id: TEXT_ID, start: 0, end: 60 };
  server.use(
    http.get(at("/runs/:id/evidence"), () =>
      HttpResponse.json({
        items: [
          {
            id: "E1",
            source: "S1",
            source_id: TEXT_ID,
            title: "undici: Client",
            heading: "<img src=x>",
            name: "docs/Client.md",
            passage,
            text: `A client has one origin. ${QUOTE} So it is.`,
          },
        ],
        next: null,
      }),
    ),
  );
  const { user, editor, container } = await openEditor();
  await user.click(within(editor).getByRole("button", { name: "Cite a passage in: Sentence 2" }));
  await user.click(await screen.findByRole("button", { name: /undici: Client/ }));
  await user.click(screen.getByRole("button", { name: QUOTE }));
  await user.click(screen.getByRole("button", { name: "Cite these words" }));
  expect(await within(editor).findByRole("button", { name: "Citation new of: Sentence 2" })).toBeVisible();
  await user.click(within(editor).getByRole("button", { name: "Save as a new version" }));
  await waitFor(() => expect(saved).toHaveLength(1));
  expect(saved[0]).toMatchObject({ sections: [{ sentences: [{ citations: [{ passage, quote: QUOTE }] }] }] });
  expect(container.querySelector("img")).toBeNull();
});

test("a citation is removed or moved by its menu, and cannot be typed", async () => {
  const saved = serveReport();
  const { user, editor } = await openEditor();
  await user.click(within(editor).getByRole("button", { name: "Citation 1 of: Short answer" }));
  await user.click(await screen.findByRole("menuitem", { name: /Move on/ }));
  expect(await within(editor).findByRole("button", { name: "Citation 1 of: Sentence 2" })).toBeVisible();
  expect(within(editor).queryByRole("button", { name: "Citation 1 of: Short answer" })).toBeNull();
  await user.click(within(editor).getByRole("button", { name: "Undo" }));
  await user.type(within(editor).getByRole("textbox", { name: "Sentence 2" }), " [[7]");
  await user.click(within(editor).getByRole("button", { name: "Save as a new version" }));
  await waitFor(() => expect(saved).toHaveLength(1));
  expect(saved[0]).toMatchObject({
    answer: { citations: [1] },
    sections: [{ sentences: [{ text: "It is always faster. [7]", citations: [] }] }],
  });
});

test("what the server rejects is marked at its sentence", async () => {
  serveReport();
  server.use(
    http.post(at("/runs/:id/report/versions"), () =>
      problem(422, "The quoted words are not in E1", { field: "sections.0.sentences.0.citations" }),
    ),
  );
  const { user, editor } = await openEditor();
  const field = within(editor).getByRole("textbox", { name: "Sentence 2" });
  await user.type(field, " So.");
  await user.click(within(editor).getByRole("button", { name: "Save as a new version" }));
  await waitFor(() => expect(field).toHaveAttribute("aria-invalid", "true"));
  expect(screen.getByRole("alert")).toHaveTextContent("The quoted words are not in E1");
});

test("Enter splits a sentence, Backspace joins it, and Alt with an arrow moves it", async () => {
  serveReport();
  const { user, editor } = await openEditor();
  const field = within(editor).getByRole("textbox", { name: "Sentence 2" }) as HTMLTextAreaElement;
  await user.type(field, "{Enter}", { initialSelectionStart: 5, initialSelectionEnd: 5 });
  expect(within(editor).getByRole("textbox", { name: "Sentence 3" })).toHaveValue("always faster.");
  await waitFor(() => expect(within(editor).getByRole("textbox", { name: "Sentence 3" })).toHaveFocus());
  await user.keyboard("{Alt>}{ArrowUp}{/Alt}");
  expect(within(editor).getByRole("textbox", { name: "Sentence 2" })).toHaveValue("always faster.");
  await user.keyboard("{Alt>}{ArrowDown}{/Alt}");
  const second = within(editor).getByRole("textbox", { name: "Sentence 3" });
  await user.type(second, "{Backspace}", { initialSelectionStart: 0, initialSelectionEnd: 0 });
  expect(within(editor).getByRole("textbox", { name: "Sentence 2" })).toHaveValue("It is always faster.");
});

const CLAIMS = aReport({
  sections: [
    {
      heading: "Details",
      sentences: [
        aSentence({ id: "s2", text: "It is fast.", citations: [1] }),
        aSentence({
          id: "s3",
          text: "It has 40 sockets.",
          citations: [2],
          supported: false,
          verdict: "contradicted",
          judgment: { verdict: "contradicted", reason: "Ten.", passage: 2, contradiction: 1 },
          reasons: ["checker: contradicted by [1]: Ten."],
        }),
      ],
    },
  ],
  citations: [1, 2].map((number) => ({ ...aReport().citations[0], number, quote: `Words ${number}` }) as never),
  conflicts: [{ matter: "Number of sockets", found_by: "checker", citations: [1, 2] }],
  conflict_search: "Conflicts were looked for by rules.",
});

test("the claim table filters by verdict, jumps to the sentence, and shows both sides of a conflict", async () => {
  serveReport(CLAIMS);
  const { user, router } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("tab", { name: "Claims 3" }));
  const table = await screen.findByRole("table", { name: "Claims of the report" });
  expect(within(table).getAllByRole("row")).toHaveLength(4);
  await user.click(screen.getByRole("button", { name: "Contradicted 1" }));
  expect(within(table).getAllByRole("row")).toHaveLength(2);
  expect(within(table).getByText("checker: contradicted by [1]: Ten.")).toBeVisible();
  expect(screen.getByRole("heading", { name: "Number of sockets" })).toBeVisible();
  expect(screen.getByText("Words 1")).toBeVisible();
  expect(screen.getByText("Words 2")).toBeVisible();
  await user.click(within(table).getByRole("button", { name: "It has 40 sockets." }));
  await waitFor(() => expect(document.getElementById("sentence-s3")).toHaveFocus());
  expect(router.state.location.search).not.toHaveProperty("part");
});

const VERSIONS = [
  { version: 2, edited_by: "web_ui", editor: "person", note: "Milder <b>", base_version: 1 },
  { version: 1, edited_by: null, editor: null, note: "", base_version: null },
].map((one) => ({ ...one, created_at: "2026-03-01T10:00:00Z", title: "T", author: "gpt" }));

test("versions are listed, an earlier one is shown as such and restored", async () => {
  serveReport(aReport({ version: 2, latest_version: 2, edited_by: "web_ui", editor: "person", base_version: 1 }));
  let restored: unknown = null;
  server.use(
    http.get(at("/runs/:id/report"), ({ request }) =>
      HttpResponse.json(
        aReport({ version: new URL(request.url).searchParams.get("version") === "1" ? 1 : 2, latest_version: 2 }),
      ),
    ),
    http.get(at("/runs/:id/report/versions"), () => HttpResponse.json({ items: VERSIONS, next: null })),
    http.get(at("/runs/:id/report/changes"), () =>
      HttpResponse.json({ answer: [], sections: [], kept_sections: 1, title_before: "Before" }),
    ),
    http.post(at("/runs/:id/report/versions/1/restore"), async ({ request }) => {
      restored = await request.json();
      return HttpResponse.json(aReport({ version: 3, latest_version: 3 }), { status: 201 });
    }),
  );
  const { user, router } = renderPage(`${ADDRESS}&part=versions`);
  expect(await screen.findByText("Milder <b>")).toBeVisible();
  expect(await screen.findByText("Before")).toBeVisible();
  await user.click(screen.getAllByRole("button", { name: "Show" })[1] as HTMLElement);
  expect(await screen.findByText("Version 1 of 2")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
  expect(router.state.location.search).toMatchObject({ version: 1 });
  await user.click(screen.getByRole("tab", { name: /Versions/ }));
  await user.click(await screen.findByRole("button", { name: "Restore" }));
  expect(await screen.findByText("Version 1 is restored as version 3.")).toBeVisible();
  expect(restored).toEqual({ latest_version: 2, note: "" });
});

test("a removed word and the word that replaces it are kept apart", async () => {
  serveReport(aReport({ version: 2, latest_version: 2 }));
  const changed = { kind: "changed", text: "It argues far less.", before: "It argues against less." };
  server.use(
    http.get(at("/runs/:id/report/versions"), () => HttpResponse.json({ items: VERSIONS, next: null })),
    http.get(at("/runs/:id/report/changes"), () =>
      HttpResponse.json({ answer: [changed], sections: [], kept_sections: 1, title_before: "" }),
    ),
  );
  renderPage(`${ADDRESS}&part=versions`);
  const removed = await screen.findByText("against", { selector: "del" });
  expect(removed.closest("li")).toHaveTextContent("It argues against far less.");
});

test("a failed export says what to do, and can be tried again", async () => {
  serveReport();
  server.use(
    http.get(at("/runs/:id/export"), ({ request }) => {
      expect(new URL(request.url).search).toBe("?format=pdf&version=1");
      return problem(422, "PDF files cannot be written", { remedy: "pip install 'offing[pdf]'" });
    }),
  );
  const { user } = renderPage(ADDRESS);
  await user.click((await screen.findAllByRole("button", { name: "Export" }))[0] as HTMLElement);
  await user.click(await screen.findByRole("menuitem", { name: /PDF/ }));
  expect(await screen.findByRole("alert")).toHaveTextContent("pip install 'offing[pdf]'");
  await user.click(screen.getByRole("button", { name: "Close" }));
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a question about a sentence is a follow-up with its words", async () => {
  serveReport();
  let sent: Record<string, unknown> = {};
  server.use(
    http.post(at("/runs"), async ({ request }) => {
      sent = (await request.json()) as Record<string, unknown>;
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user } = renderPage(ADDRESS);
  await user.click((await screen.findAllByRole("button", { name: "Rate this sentence" }))[1] as HTMLElement);
  await user.click(await screen.findByRole("menuitem", { name: "Ask about this…" }));
  await user.type(await screen.findByRole("textbox", { name: "Your question" }), "Who measured it?");
  await user.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(sent.follow_up).toEqual({ kind: "question", run_id: RUN_ID }));
  expect(sent.question).toBe("Who measured it?\n\nThis is about this part of the report: “It is always faster.”");
});
