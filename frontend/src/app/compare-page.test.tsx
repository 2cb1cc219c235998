import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aReport, aRun, aSentence } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const [A, B] = ["00000000-0000-4000-8000-0000000000aa", "00000000-0000-4000-8000-0000000000bb"];
const ended = { status: "done" as const, stop_reason: "answered" as const, step_marks: "psrw" };

function serveBoth() {
  server.use(
    http.get(at(`/runs/${A}`), () => HttpResponse.json(aRun({ id: A, question: "Why?", ...ended }))),
    http.get(at(`/runs/${B}`), () =>
      HttpResponse.json(aRun({ id: B, question: "Why?", graph: "hiper", given_title: "With subgoals", ...ended })),
    ),
    http.get(at(`/runs/${B}/report`), () =>
      HttpResponse.json(
        aReport({
          answer: aSentence({ text: "A client keeps ten open connections.", citations: [1] }),
          sources: [],
          citations: [],
        }),
      ),
    ),
  );
}

test("two runs are compared by settings, sources and sentences, with the differences named", async () => {
  serveBoth();
  renderPage(`/runs/compare?a=${A}&b=${B}`);
  const settings = await screen.findByRole("table", { name: "Settings" });
  expect(within(settings).getByRole("rowheader", { name: /Graph, differs/ })).toBeVisible();
  expect(within(settings).getByRole("rowheader", { name: "Question" })).toBeVisible();
  expect(screen.getByText("undici: Client")).toBeVisible();
  expect(screen.getByText(/ten/, { selector: "ins" })).toBeVisible();
  expect(screen.getAllByText("It is always faster.")).toHaveLength(2);
});

test("the second run is chosen from a search, and a run that does not exist says so", async () => {
  serveBoth();
  server.use(
    http.get(at("/runs"), () =>
      HttpResponse.json({ items: [aRun({ id: B, question: "Why?", given_title: "With subgoals" })], next: null }),
    ),
  );
  const { user, router } = renderPage(`/runs/compare?a=${A}`);
  await user.click(await screen.findByRole("link", { name: "With subgoals" }));
  expect(await screen.findByRole("table", { name: "Settings" })).toBeVisible();
  expect(router.state.location.search).toEqual({ a: A, b: B });
  server.use(http.get(at(`/runs/${A}`), () => problem(404, "There is no such run")));
  renderPage(`/runs/compare?a=${A}&b=${B}`);
  expect(await screen.findByText("There is no such run", { selector: "p" })).toBeVisible();
});
