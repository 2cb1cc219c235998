import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
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
