import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { ChildRun } from "@/shared/api/run-trees";
import { aRun, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const CHILD = "019aa6f0-3c1e-7b50-8d1f-2f6a1f6f2a11";

function aChild(more: Partial<ChildRun> = {}): ChildRun {
  return {
    id: CHILD,
    question: "What does a berth cost?",
    graph: "agentflow",
    status: "done",
    stop_reason: "nothing_found",
    waiting_for: null,
    texts: {},
    turns: 3,
    created_at: "2026-03-01T10:00:00Z",
    ended_at: "2026-03-01T10:00:04Z",
    ...more,
  };
}

function serveTree(parent: string | null, ...children: ChildRun[]) {
  server.use(http.get(at("/runs/:id/tree"), () => HttpResponse.json({ parent_id: parent, children })));
}

test("a run shows its child runs with their status", async () => {
  serveTree(null, aChild(), aChild({ id: RUN_ID, status: "failed", stop_reason: "graph_error", question: "And how?" }));
  renderPage(`/runs/${RUN_ID}`);
  const navigation = await screen.findByRole("navigation", { name: "Parent and child runs" });
  const link = within(navigation).getByRole("link", { name: "What does a berth cost?" });
  expect(link).toHaveAttribute("href", expect.stringContaining(CHILD));
  expect(navigation).toHaveTextContent("Child runs (2):");
  expect(navigation).toHaveTextContent("nothing found, 3 turns");
  expect(navigation).toHaveTextContent("failed");
});

test("a child run links to its parent", async () => {
  serveTree(CHILD);
  renderPage(`/runs/${RUN_ID}`);
  const link = await screen.findByRole("link", { name: "Child run of another run" });
  expect(link).toHaveAttribute("href", expect.stringContaining(CHILD));
});

test("a run without parent and children shows no run tree", async () => {
  serveTree(null);
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ question: "Alone?" }))));
  renderPage(`/runs/${RUN_ID}`);
  await screen.findByRole("heading", { name: "Alone?" });
  expect(screen.queryByRole("navigation", { name: "Parent and child runs" })).toBeNull();
});
