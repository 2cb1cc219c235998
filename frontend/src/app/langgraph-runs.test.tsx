import { fireEvent, screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { LangGraphRun } from "@/shared/api/langgraph-runs";
import { aRun, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const RESUMED_ID = "01980000-0000-7000-8000-0000000000fe";

const INTERRUPT = { id: "5b3f", prompt: "May I send the letter?", detail: "", response_form: null };

const STATE: LangGraphRun = {
  assistant_id: "01980000-0000-7000-8000-000000000031",
  metadata: { customer: "ada" },
  tags: ["letters", "tests"],
  input: { topic: "the letter" },
  command: null,
  values: { topic: "the letter", decisions: ["none yet"] },
  next_nodes: ["ask"],
  interrupts: [INTERRUPT],
};

/** Serve an ended run of a LangGraph client. Returns the responses that were sent. */
function serveRun(state: LangGraphRun) {
  const sent: unknown[] = [];
  const run = {
    status: "done",
    stop_reason: "answered",
    ended_at: "2026-03-01T10:01:00Z",
    protocol: "langgraph",
    graph: "letters",
  } as const;
  server.use(
    http.get(at("/runs/:id"), ({ params }) => HttpResponse.json(aRun({ ...run, id: String(params.id) }))),
    http.get(at("/runs/:id/langgraph"), ({ params }) =>
      HttpResponse.json(params.id === RUN_ID ? state : { ...state, interrupts: [] }),
    ),
    http.post(at("/runs/:id/interrupts/:interrupt/response"), async ({ params, request }) => {
      sent.push({ interrupt: params.interrupt, body: await request.json() });
      return HttpResponse.json(aRun({ ...run, id: RESUMED_ID }), { status: 201 });
    }),
  );
  return sent;
}

test("the tab State shows what the client asked for, and the values that the run left", async () => {
  serveRun({ ...STATE, interrupts: [] });
  renderPage(`/runs/${RUN_ID}?tab=state`);
  expect(await screen.findByText("Tags: letters, tests")).toBeVisible();
  expect(screen.getByText("Nodes that come next: ask")).toBeVisible();
  for (const text of [/none yet/, /"topic": "the letter"\s*\}$/, /"customer": "ada"/])
    expect(screen.getByText(text)).toBeVisible();
  expect(screen.queryByRole("region", { name: "Interrupts" })).toBeNull();
});

test("a run without a stored state says so", async () => {
  serveRun({ ...STATE, values: null, interrupts: [], next_nodes: [] });
  renderPage(`/runs/${RUN_ID}?tab=state`);
  expect(await screen.findByText("No state is stored, or it was deleted after its time.")).toBeVisible();
});

test("a response to an interrupt opens the run that continues from it", async () => {
  const sent = serveRun(STATE);
  renderPage(`/runs/${RUN_ID}`);
  const field = await screen.findByLabelText("Response to: May I send the letter?");
  fireEvent.change(field, { target: { value: " yes " } });
  fireEvent.submit(field);
  await waitFor(() => expect(screen.queryByText("May I send the letter?")).toBeNull());
  expect(sent).toEqual([{ interrupt: "5b3f", body: { text: "yes" } }]);
});
