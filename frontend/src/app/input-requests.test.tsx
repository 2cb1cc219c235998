import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { ToolReview } from "@/features/input-requests/decisions";
import type { InputRequest } from "@/shared/api/input-requests";
import { anInputRequest, aRun, aStep, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}`;

/**
 * Serve a waiting run with these input requests. Returns the responses that were sent; a request with a response is
 * closed.
 */
function serveWaitingRun(...requests: InputRequest[]) {
  const sent: { number: number; body: unknown }[] = [];
  const items = () => requests.map((q) => ({ ...q, pending: !sent.some(({ number }) => number === q.number) }));
  const open = () => items().filter((q) => q.pending).length;
  server.use(
    http.get(at("/runs/:id"), () =>
      HttpResponse.json(aRun({ status: "waiting", waiting_for: "a person's answer", pending_input_requests: open() })),
    ),
    http.get(at("/runs/:id/input-requests"), () => HttpResponse.json({ items: items() })),
    http.post(at("/runs/:id/input-requests/:number/response"), async ({ params, request }) => {
      sent.push({ number: Number(params.number), body: await request.json() });
      return HttpResponse.json(items()[0]);
    }),
  );
  return sent;
}

test("a run that waits for a person shows it, and a text response closes the input request", async () => {
  const sent = serveWaitingRun(anInputRequest(7));
  renderPage(ADDRESS);
  const field = await screen.findByLabelText("Response to: Which year?");
  expect(screen.getByText("Waiting for you")).toBeVisible();
  fireEvent.change(field, { target: { value: " 1991 " } });
  fireEvent.submit(field);
  await waitFor(() => expect(screen.queryByText("Which year?")).toBeNull());
  expect(sent).toEqual([{ number: 7, body: { text: "1991" } }]);
});

test("an edited plan and a comment survive a reload, and are deleted once they are sent", async () => {
  const sent = serveWaitingRun(anInputRequest(3, { kind: "plan_review", prompt: "Find it", steps: ["look", "write"] }));
  const first = renderPage(ADDRESS);
  fireEvent.change(await screen.findByLabelText("Plan, one step per line"), { target: { value: "look twice" } });
  fireEvent.change(screen.getByLabelText("Comment on the plan"), { target: { value: "slowly" } });
  first.unmount();
  renderPage(ADDRESS);
  expect(await screen.findByLabelText("Plan, one step per line")).toHaveValue("look twice");
  expect(screen.getByLabelText("Comment on the plan")).toHaveValue("slowly");
  fireEvent.click(screen.getByRole("button", { name: "Approve the edited plan" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  await waitFor(() => expect(Object.keys(sessionStorage).filter((key) => key.includes("input-response"))).toEqual([]));
});

test("each choice is a button", async () => {
  const sent = serveWaitingRun(anInputRequest(7, { choices: ["1990", "1991"] }));
  renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "1990" }));
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { text: "1990" } }]));
});

test("a tool call that needs approval shows its arguments, and is denied with a comment", async () => {
  const detail = 'send_mail\n{\n  "to": "x@example.org"\n}\n\nAsked because of mail';
  const sent = serveWaitingRun(anInputRequest(9, { kind: "tool", prompt: "May the run use send_mail?", detail }));
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

function aToolReview(number: number, reviews: ToolReview[], part: Partial<InputRequest> = {}) {
  return anInputRequest(number, {
    kind: "interrupt",
    prompt: "May it?",
    response_form: { reviews, response_schema: null },
    ...part,
  });
}

function aSchemaRequest(schema: Record<string, unknown>) {
  return anInputRequest(7, {
    kind: "interrupt",
    prompt: "Shall I?",
    response_form: { reviews: [], response_schema: schema },
  });
}

test("a tool call of another package is shown with its allowed decisions, and approved by one click", async () => {
  const sent = serveWaitingRun(aToolReview(7, [SEND], { detail: "the whole value" }));
  renderPage(ADDRESS);
  const decisions = await screen.findByRole("group", { name: "Decision on send" });
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

test("edited arguments can be sent once they are an object, and survive a reload until then", async () => {
  const sent = serveWaitingRun(aToolReview(7, [SEND]));
  const first = renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "Edit" }));
  const editor = "Arguments of send, as JSON";
  expect(screen.getByLabelText(editor)).toHaveValue(JSON.stringify(SEND.args, null, 2));
  for (const invalid of ["{", "[1]"]) {
    fireEvent.change(screen.getByLabelText(editor), { target: { value: invalid } });
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
  await waitFor(() => expect(Object.keys(sessionStorage).filter((key) => key.includes("input-response"))).toEqual([]));
});

test("a rejection may have a reason, and a response must have a text", async () => {
  const sent = serveWaitingRun(aToolReview(7, [SEND]), aToolReview(8, [SEND]));
  renderPage(ADDRESS);
  fireEvent.click((await screen.findAllByRole("button", { name: "Reject" }))[0] as HTMLElement);
  fireEvent.change(screen.getByLabelText("Reason for rejecting send"), { target: { value: " not now " } });
  fireEvent.submit(screen.getByLabelText("Reason for rejecting send"));
  await waitFor(() => expect(screen.getAllByRole("button", { name: "Respond" })).toHaveLength(1));
  fireEvent.click(screen.getByRole("button", { name: "Respond" }));
  expect(screen.getByRole("button", { name: "Send this response" })).toBeDisabled();
  fireEvent.change(screen.getByLabelText("Response instead of send"), { target: { value: "by post" } });
  fireEvent.click(screen.getByRole("button", { name: "Send this response" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent.map(({ body }) => body)).toEqual([
    { decisions: [{ type: "reject", message: "not now" }] },
    { decisions: [{ type: "respond", message: "by post" }] },
  ]);
});

test("decisions on several calls keep their order, and can be sent when all are made", async () => {
  const sent = serveWaitingRun(aToolReview(7, [SEND, DROP]));
  renderPage(ADDRESS);
  const drop = await screen.findByRole("group", { name: "Decision on drop (2 of 2)" });
  expect(within(drop).queryByRole("button", { name: "Edit" })).toBeNull();
  fireEvent.click(within(drop).getByRole("button", { name: "Reject" }));
  expect(screen.getByRole("button", { name: "Send 2 decisions" })).toBeDisabled();
  expect(screen.getByText("Undecided: send")).toBeVisible();
  const first = screen.getByRole("group", { name: "Decision on send (1 of 2)" });
  fireEvent.click(within(first).getByRole("button", { name: "Approve" }));
  expect(within(first).getByRole("button", { name: "Approve" })).toHaveAttribute("aria-pressed", "true");
  fireEvent.click(screen.getByRole("button", { name: "Send 2 decisions" }));
  const decisions = [
    { type: "approve", message: "" },
    { type: "reject", message: "" },
  ];
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { decisions } }]));
});

test("several calls can be approved at once if each allows it", async () => {
  const sent = serveWaitingRun(
    aToolReview(7, [SEND, DROP]),
    aToolReview(8, [SEND, { ...DROP, decisions: ["reject"] }]),
  );
  renderPage(ADDRESS);
  fireEvent.click(await screen.findByRole("button", { name: "Approve all 2" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]?.body).toEqual({ decisions: Array(2).fill({ type: "approve", message: "" }) });
});

test("arguments that are too long cannot be edited, and the value of the interrupt is shown instead", async () => {
  serveWaitingRun(aToolReview(7, [{ ...SEND, args: null }], { detail: "the whole value" }));
  renderPage(ADDRESS);
  expect(await screen.findByText("The arguments are too long to show.")).toBeVisible();
  expect(screen.getByText("the whole value")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
});

test("a rejected response names the field, and the form keeps its input", async () => {
  serveWaitingRun(aToolReview(7, [SEND]));
  let rejected = 0;
  server.use(
    http.post(at("/runs/:id/input-requests/:number/response"), () => {
      rejected += 1;
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
    await waitFor(() => expect(rejected).toBe(times));
  }
});

test("a flat schema has a field for each value, and required values must be entered", async () => {
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
  const sent = serveWaitingRun(aSchemaRequest(schema));
  renderPage(ADDRESS);
  const answer = await screen.findByRole("button", { name: "Send response" });
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

test("a schema that is not flat has a JSON field", async () => {
  const sent = serveWaitingRun(aSchemaRequest({ type: "array", items: { type: "object" } }));
  renderPage(ADDRESS);
  const field = await screen.findByLabelText("Response to: Shall I?");
  fireEvent.change(field, { target: { value: "[{" } });
  expect(field).toHaveAccessibleDescription(/Invalid JSON/);
  expect(screen.getByRole("button", { name: "Send response" })).toBeDisabled();
  expect(screen.getByText("Required format of the response")).toBeVisible();
  fireEvent.change(field, { target: { value: "[{}] " } });
  fireEvent.click(screen.getByRole("button", { name: "Send response" }));
  await waitFor(() => expect(sent).toEqual([{ number: 7, body: { text: "[{}]" } }]));
});

test("a plan is approved, approved with edits, or sent back with a comment", async () => {
  const review: Partial<InputRequest> = { kind: "plan_review", prompt: "Find it", steps: ["look", "write"] };
  const sent = serveWaitingRun(
    anInputRequest(3, review),
    anInputRequest(4, { ...review, steps: ["read"] }),
    anInputRequest(5, review),
  );
  renderPage(ADDRESS);
  const plans = await screen.findAllByLabelText("Plan, one step per line");
  const nth = (name: string, index: number) => screen.getAllByRole("button", { name })[index] as HTMLElement;
  expect(plans.map((plan) => (plan as HTMLTextAreaElement).value)).toEqual(["look\nwrite", "read", "look\nwrite"]);
  expect(nth("Request another plan", 2)).toBeDisabled();
  fireEvent.change(screen.getAllByLabelText("Comment on the plan")[2] as HTMLElement, { target: { value: "older" } });
  fireEvent.click(nth("Request another plan", 2));
  await waitFor(() => expect(screen.getAllByLabelText("Plan, one step per line")).toHaveLength(2));
  fireEvent.change(screen.getAllByLabelText("Plan, one step per line")[1] as HTMLElement, {
    target: { value: "read\n\n  think " },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Approve the edited plan" }));
  await waitFor(() => expect(screen.getAllByLabelText("Plan, one step per line")).toHaveLength(1));
  fireEvent.click(nth("Approve this plan", 0));
  await waitFor(() => expect(screen.queryByLabelText("Plan, one step per line")).toBeNull());
  expect(sent.map(({ body }) => body)).toEqual([
    { decision: "commented", comment: "older" },
    { decision: "edited", steps: ["read", "think"], comment: "" },
    { decision: "approved", comment: "" },
  ]);
});

test("if another user responded first, the web UI says so and shows the pending input requests", async () => {
  serveWaitingRun(anInputRequest(7));
  let answered = false;
  server.use(
    http.get(at("/runs/:id/input-requests"), () =>
      HttpResponse.json({ items: [anInputRequest(7, { pending: !answered })] }),
    ),
    http.post(at("/runs/:id/input-requests/:number/response"), () => {
      answered = true;
      return problem(409, "This input request already has a response.");
    }),
  );
  renderPage(ADDRESS);
  const field = await screen.findByLabelText("Response to: Which year?");
  fireEvent.change(field, { target: { value: "1991" } });
  fireEvent.submit(field);
  await waitFor(() => expect(screen.queryByLabelText("Response to: Which year?")).toBeNull());
});

test("a new input request appears without taking the focus, and g i moves the focus to it", async () => {
  let asks = false;
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ pending_input_requests: 0 }))),
    http.get(at("/runs/:id/input-requests"), () => HttpResponse.json({ items: asks ? [anInputRequest(1)] : [] })),
  );
  const { sources } = renderPage(ADDRESS);
  await waitFor(() => expect(sources).toHaveLength(1));
  asks = true;
  act(() => {
    sources[0]?.send("step", aStep(1, { kind: "input_request", title: "Which year?" }));
    sources[0]?.send("run", aRun({ status: "waiting", pending_input_requests: 1, last_seq: 1 }));
  });
  const field = await screen.findByLabelText("Response to: Which year?");
  expect(field).not.toHaveFocus();
  fireEvent.keyDown(document.body, { key: "g" });
  fireEvent.keyDown(document.body, { key: "i" });
  expect(field).toHaveFocus();
});

test("input requests of an ended run are not shown", async () => {
  server.use(
    http.get(at("/runs/:id"), () =>
      HttpResponse.json(aRun({ status: "cancelled", stop_reason: "cancelled", pending_input_requests: 1 })),
    ),
    http.get(at("/runs/:id/input-requests"), () => HttpResponse.json({ items: [anInputRequest(1)] })),
  );
  renderPage(ADDRESS);
  await screen.findByText("Cancelled");
  expect(screen.queryByText("Which year?")).toBeNull();
});
