import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { ToolReview } from "@/features/asking/decisions";
import type { Question } from "@/shared/api/questions";
import { aQuestion, aRun, aStep, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}`;

/** A run that waits for answers to these; what is sent is kept, and an answered question is closed. */
function waits(...asked: Question[]) {
  const sent: { number: number; body: unknown }[] = [];
  const items = () => asked.map((q) => ({ ...q, open: !sent.some(({ number }) => number === q.number) }));
  const open = () => items().filter((q) => q.open).length;
  server.use(
    http.get(at("/runs/:id"), () =>
      HttpResponse.json(aRun({ status: "waiting", waiting_for: "a person's answer", questions: open() })),
    ),
    http.get(at("/runs/:id/questions"), () => HttpResponse.json({ items: items() })),
    http.post(at("/runs/:id/questions/:number/answer"), async ({ params, request }) => {
      sent.push({ number: Number(params.number), body: await request.json() });
      return HttpResponse.json(items()[0]);
    }),
  );
  return sent;
}

test("a run that waits for a person says so, and an answer in words closes the question", async () => {
  const sent = waits(aQuestion(7));
  renderPage(ADDRESS);
  const field = await screen.findByLabelText("Answer to: Which year?");
  expect(screen.getByText("Waits for you")).toBeVisible();
  fireEvent.change(field, { target: { value: " 1991 " } });
  fireEvent.submit(field);
  await waitFor(() => expect(screen.queryByText("Which year?")).toBeNull());
  expect(sent).toEqual([{ number: 7, body: { text: "1991" } }]);
});

test("an edited plan and a comment survive a reload, and are forgotten once they are sent", async () => {
  const sent = waits(aQuestion(3, { kind: "review", prompt: "Find it", steps: ["look", "write"] }));
  const first = renderPage(ADDRESS);
  fireEvent.change(await screen.findByLabelText("The plan, one step a line"), { target: { value: "look twice" } });
  fireEvent.change(screen.getByLabelText("Comment on the plan"), { target: { value: "slowly" } });
  first.unmount();
  renderPage(ADDRESS);
  expect(await screen.findByLabelText("The plan, one step a line")).toHaveValue("look twice");
  expect(screen.getByLabelText("Comment on the plan")).toHaveValue("slowly");
  fireEvent.click(screen.getByRole("button", { name: "Follow the edited plan" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  await waitFor(() => expect(Object.keys(sessionStorage).filter((key) => key.includes("answer"))).toEqual([]));
});

test("each choice is a button", async () => {
  const sent = waits(aQuestion(7, { choices: ["1990", "1991"] }));
  renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "1990" }));
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { text: "1990" } }]));
});

test("a tool call that a rule asks about shows what would be called, and is denied with a word", async () => {
  const detail = 'send_mail\n{\n  "to": "x@example.org"\n}\n\nAsked because of mail';
  const sent = waits(aQuestion(9, { kind: "tool", prompt: "May the run use send_mail?", detail }));
  renderPage(ADDRESS);
  expect(await screen.findByText(/x@example.org/)).toBeVisible();
  fireEvent.change(screen.getByLabelText(/^Comment on/), { target: { value: "not to them" } });
  fireEvent.click(screen.getByRole("button", { name: "Deny" }));
  await waitFor(() => expect(sent).toEqual([{ number: 9, body: { approved: false, comment: "not to them" } }]));
});

const SEND: ToolReview = {
  name: "send",
  args: { to: "Ada", body: "Hello" },
  description: "A letter.",
  decisions: ["approve", "edit", "reject", "respond"],
};
const DROP: ToolReview = { name: "drop", args: { page: 7 }, description: "", decisions: ["approve", "reject"] };

function aForm(number: number, reviews: ToolReview[], part: Partial<Question> = {}) {
  return aQuestion(number, { kind: "interrupt", prompt: "May it?", form: { reviews, response_schema: null }, ...part });
}

function inSchema(schema: Record<string, unknown>) {
  return aQuestion(7, { kind: "interrupt", prompt: "Shall I?", form: { reviews: [], response_schema: schema } });
}

test("a tool call of another package is shown with what may be decided, and approved by one press", async () => {
  const sent = waits(aForm(7, [SEND], { detail: "the whole value" }));
  renderPage(ADDRESS);
  const decisions = await screen.findByRole("group", { name: "Decision about send" });
  expect(screen.getByText("A letter.")).toBeVisible();
  expect(screen.getByText(/"to": "Ada"/)).toBeVisible();
  expect(screen.queryByText("the whole value")).toBeNull();
  expect(
    within(decisions)
      .getAllByRole("button")
      .map((button) => button.textContent),
  ).toEqual(["Approve", "Edit", "Reject", "Respond"]);
  fireEvent.click(within(decisions).getByRole("button", { name: "Approve" }));
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { decisions: [{ type: "approve", message: "" }] } }]));
});

test("edited arguments are sent once they are an object, and survive a reload until then", async () => {
  const sent = waits(aForm(7, [SEND]));
  const first = renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "Edit" }));
  const editor = "Arguments of send, as JSON";
  expect(screen.getByLabelText(editor)).toHaveValue(JSON.stringify(SEND.args, null, 2));
  for (const wrong of ["{", "[1]"]) {
    fireEvent.change(screen.getByLabelText(editor), { target: { value: wrong } });
    expect(screen.getByLabelText(editor)).toBeInvalid();
    expect(screen.getByLabelText(editor)).toHaveAccessibleDescription(/JSON/);
    expect(screen.getByRole("button", { name: "Approve the edited call" })).toBeDisabled();
  }
  fireEvent.change(screen.getByLabelText(editor), { target: { value: '{"to": "Bo"}' } });
  first.unmount();
  renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "Approve the edited call" }));
  const edited = { type: "edit", message: "", edited_action: { name: "", args: { to: "Bo" } } };
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { decisions: [edited] } }]));
  await waitFor(() => expect(Object.keys(sessionStorage).filter((key) => key.includes("answer"))).toEqual([]));
});

test("a rejection may say why, and a response must say something", async () => {
  const sent = waits(aForm(7, [SEND]), aForm(8, [SEND]));
  renderPage(ADDRESS);
  fireEvent.click((await screen.findAllByRole("button", { name: "Reject" }))[0] as HTMLElement);
  fireEvent.change(screen.getByLabelText("Why send is rejected"), { target: { value: " not now " } });
  fireEvent.submit(screen.getByLabelText("Why send is rejected"));
  await waitFor(() => expect(screen.getAllByRole("button", { name: "Respond" })).toHaveLength(1));
  fireEvent.click(screen.getByRole("button", { name: "Respond" }));
  expect(screen.getByRole("button", { name: "Send this response" })).toBeDisabled();
  fireEvent.change(screen.getByLabelText("Response in place of send"), { target: { value: "by post" } });
  fireEvent.click(screen.getByRole("button", { name: "Send this response" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent.map(({ body }) => body)).toEqual([
    { decisions: [{ type: "reject", message: "not now" }] },
    { decisions: [{ type: "respond", message: "by post" }] },
  ]);
});

test("several calls are decided in their order, and are sent when each is decided", async () => {
  const sent = waits(aForm(7, [SEND, DROP]));
  renderPage(ADDRESS);
  const drop = await screen.findByRole("group", { name: "Decision about drop (2 of 2)" });
  expect(within(drop).queryByRole("button", { name: "Edit" })).toBeNull();
  fireEvent.click(within(drop).getByRole("button", { name: "Reject" }));
  expect(screen.getByRole("button", { name: "Send 2 decisions" })).toBeDisabled();
  expect(screen.getByText("Still open: send")).toBeVisible();
  const first = screen.getByRole("group", { name: "Decision about send (1 of 2)" });
  fireEvent.click(within(first).getByRole("button", { name: "Approve" }));
  expect(within(first).getByRole("button", { name: "Approve" })).toHaveAttribute("aria-pressed", "true");
  fireEvent.click(screen.getByRole("button", { name: "Send 2 decisions" }));
  const decisions = [
    { type: "approve", message: "" },
    { type: "reject", message: "" },
  ];
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { decisions } }]));
});

test("several calls are approved at once where each allows it", async () => {
  const sent = waits(aForm(7, [SEND, DROP]), aForm(8, [SEND, { ...DROP, decisions: ["reject"] }]));
  renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "Approve all 2" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]?.body).toEqual({ decisions: Array(2).fill({ type: "approve", message: "" }) });
});

test("arguments that are too long are not edited, and the value of the interrupt is shown instead", async () => {
  waits(aForm(7, [{ ...SEND, args: null }], { detail: "the whole value" }));
  renderPage(ADDRESS);
  expect(await screen.findByText("The arguments are too long to be shown here.")).toBeVisible();
  expect(screen.getByText("the whole value")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
});

test("an answer that is refused says which field, and the form stays with what was typed", async () => {
  waits(aForm(7, [SEND]));
  let refused = 0;
  server.use(
    http.post(at("/runs/:id/questions/:number/answer"), () => {
      refused += 1;
      return problem(422, "must be a string", {
        field: "decisions[0].edited_action.args.to",
        remedy: "Send a string.",
      });
    }),
  );
  renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "Edit" }));
  fireEvent.change(screen.getByLabelText(/^Arguments of send/), { target: { value: '{"to": 3}' } });
  fireEvent.click(screen.getByRole("button", { name: "Approve the edited call" }));
  expect(await screen.findByText("decisions[0].edited_action.args.to")).toBeVisible();
  expect(screen.getByText("Send a string.")).toBeVisible();
  expect(screen.getByLabelText(/^Arguments of send/)).toHaveValue('{"to": 3}');
  for (const times of [2, 3]) {
    fireEvent.click(screen.getByRole("button", { name: "Approve" }));
    await waitFor(() => expect(refused).toBe(times));
  }
});

test("a flat schema has a field for each value, and what is required is asked for", async () => {
  const schema = {
    type: "object",
    properties: {
      decision: { enum: ["yes", "no"], title: "Decision" },
      reason: { type: "string", description: "For the log.", default: "" },
      amount: { anyOf: [{ type: "integer" }, { type: "null" }] },
      urgent: { type: "boolean" },
    },
    required: ["decision", "urgent"],
  };
  const sent = waits(inSchema(schema));
  renderPage(ADDRESS);
  const answer = await screen.findByRole("button", { name: "Answer" });
  expect(answer).toBeDisabled();
  fireEvent.change(screen.getByLabelText("Decision"), { target: { value: "1" } });
  fireEvent.change(screen.getByLabelText("urgent"), { target: { value: "true" } });
  fireEvent.change(screen.getByLabelText(/^amount/), { target: { value: "3" } });
  expect(screen.getByLabelText(/^reason/)).toHaveAccessibleDescription("For the log.");
  fireEvent.click(answer);
  await waitFor(() => expect(sent).toHaveLength(1));
  const { text } = sent.map(({ body }) => body as { text: string })[0] ?? { text: "" };
  expect(JSON.parse(text)).toEqual({ decision: "no", amount: 3, urgent: true });
});

test("a schema that is not flat is answered by JSON", async () => {
  const sent = waits(inSchema({ type: "array", items: { type: "object" } }));
  renderPage(ADDRESS);
  const field = await screen.findByLabelText("Answer to: Shall I?");
  fireEvent.change(field, { target: { value: "[{" } });
  expect(field).toHaveAccessibleDescription(/not JSON/);
  expect(screen.getByRole("button", { name: "Answer" })).toBeDisabled();
  expect(screen.getByText("What the answer must look like")).toBeVisible();
  fireEvent.change(field, { target: { value: "[{}] " } });
  fireEvent.click(screen.getByRole("button", { name: "Answer" }));
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { text: "[{}]" } }]));
});

test("a plan is followed as it is, as it was edited, or sent back with a comment", async () => {
  const review: Partial<Question> = { kind: "review", prompt: "Find it", steps: ["look", "write"] };
  const sent = waits(aQuestion(3, review), aQuestion(4, { ...review, steps: ["read"] }), aQuestion(5, review));
  renderPage(ADDRESS);
  const plans = await screen.findAllByLabelText("The plan, one step a line");
  const nth = (name: string, index: number) => screen.getAllByRole("button", { name })[index] as HTMLElement;
  expect(plans.map((plan) => (plan as HTMLTextAreaElement).value)).toEqual(["look\nwrite", "read", "look\nwrite"]);
  expect(nth("Ask for another plan", 2)).toBeDisabled();
  fireEvent.change(screen.getAllByLabelText("Comment on the plan")[2] as HTMLElement, { target: { value: "older" } });
  fireEvent.click(nth("Ask for another plan", 2));
  await waitFor(() => expect(screen.getAllByLabelText("The plan, one step a line")).toHaveLength(2));
  fireEvent.change(screen.getAllByLabelText("The plan, one step a line")[1] as HTMLElement, {
    target: { value: "read\n\n  think " },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Follow the edited plan" }));
  await waitFor(() => expect(screen.getAllByLabelText("The plan, one step a line")).toHaveLength(1));
  fireEvent.click(nth("Follow this plan", 0));
  await waitFor(() => expect(screen.queryByLabelText("The plan, one step a line")).toBeNull());
  expect(sent.map(({ body }) => body)).toEqual([
    { verdict: "commented", comment: "older" },
    { verdict: "edited", steps: ["read", "think"], comment: "" },
    { verdict: "approved", comment: "" },
  ]);
});

test("where somebody else was first, the page says so and shows what is still open", async () => {
  waits(aQuestion(7));
  let answered = false;
  server.use(
    http.get(at("/runs/:id/questions"), () => HttpResponse.json({ items: [aQuestion(7, { open: !answered })] })),
    http.post(at("/runs/:id/questions/:number/answer"), () => {
      answered = true;
      return problem(409, "This question has been answered.");
    }),
  );
  renderPage(ADDRESS);
  const field = await screen.findByLabelText("Answer to: Which year?");
  fireEvent.change(field, { target: { value: "1991" } });
  fireEvent.submit(field);
  await waitFor(() => expect(screen.queryByLabelText("Answer to: Which year?")).toBeNull());
});

test("a question that comes while the page is open appears, and takes the focus only when asked to", async () => {
  let asks = false;
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ questions: 0 }))),
    http.get(at("/runs/:id/questions"), () => HttpResponse.json({ items: asks ? [aQuestion(1)] : [] })),
  );
  const { sources } = renderPage(ADDRESS);
  await waitFor(() => expect(sources).toHaveLength(1));
  asks = true;
  act(() => {
    sources[0]?.says("step", aStep(1, { kind: "question", title: "Which year?" }));
    sources[0]?.says("run", aRun({ status: "waiting", questions: 1, last_seq: 1 }));
  });
  const field = await screen.findByLabelText("Answer to: Which year?");
  expect(field).not.toHaveFocus();
  fireEvent.keyDown(document.body, { key: "g" });
  fireEvent.keyDown(document.body, { key: "q" });
  expect(field).toHaveFocus();
});

test("what a run asked before it ended is asked no more", async () => {
  server.use(
    http.get(at("/runs/:id"), () =>
      HttpResponse.json(aRun({ status: "cancelled", stop_reason: "cancelled", questions: 1 })),
    ),
    http.get(at("/runs/:id/questions"), () => HttpResponse.json({ items: [aQuestion(1)] })),
  );
  renderPage(ADDRESS);
  await screen.findByText("Cancelled");
  expect(screen.queryByText("Which year?")).toBeNull();
});
