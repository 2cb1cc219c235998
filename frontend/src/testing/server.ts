/**
 * The network of the tests: every route that the web UI reads on its own, with default responses. A test adds its own
 * before them.
 */

import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import {
  aGraph,
  aJob,
  aModel,
  aReport,
  aRun,
  aSource,
  aStep,
  aTenant,
  PROVIDER_KINDS,
  SOURCE_ID,
  TEXT_ID,
} from "./builders";

export function at(path: string): string {
  return `${location.origin}/api/v1${path}`;
}

export function problem(status: number, title: string, more: Record<string, string> = {}) {
  return HttpResponse.json({ type: "about:blank", title, status, detail: title, ...more }, { status });
}

export const server = setupServer(
  http.get(at("/session"), () => HttpResponse.json({ tenant: "local", csrf_token: "token-of-this-session" })),
  http.get(at("/health/ready"), () => HttpResponse.json({ status: "ok", parts: { postgres: "ok", redis: "ok" } })),
  http.get(at("/notifications"), () => HttpResponse.json({ items: [], next: null, unread_count: 0 })),
  http.get(at("/webhooks"), () => HttpResponse.json([])),
  http.get(at("/tenant"), () => HttpResponse.json(aTenant())),
  http.get(at("/providers"), () => HttpResponse.json([])),
  http.get(at("/provider-kinds"), () => HttpResponse.json(PROVIDER_KINDS)),
  http.get(at("/providers/:name/models"), () =>
    HttpResponse.json({ items: [aModel()], total: 1, source: "server", problem: "" }),
  ),
  http.get(at("/presets"), () => HttpResponse.json([])),
  http.get(at("/runs/counts"), () =>
    HttpResponse.json({ waiting_for_person: 0, active: 0, failed: 0, pinned: 0, archived: 0 }),
  ),
  http.get(at("/graphs"), () =>
    HttpResponse.json([
      aGraph(),
      aGraph({ name: "hiper", state_view: "subgoals" }),
      aGraph({ name: "iterresearch", state_view: "versions" }),
    ]),
  ),
  http.get(at("/mcp-servers"), () => HttpResponse.json([])),
  http.get(at("/engines"), () =>
    HttpResponse.json([
      {
        name: "extractive",
        available: true,
        models: [],
        model_details: [],
        note: "No language model.",
        texts: {},
        offered_at: "",
      },
    ]),
  ),
  http.get(at("/run-statistics"), () => HttpResponse.json({ items: [] })),
  http.get(at("/tool-policies"), () => HttpResponse.json([])),
  http.get(at("/question-presets"), () => HttpResponse.json({ items: [] })),
  http.get(at("/runs"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/tags"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/runs/:id"), () => HttpResponse.json(aRun())),
  http.get(at("/runs/:id/steps"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/runs/:id/steps/:seq"), ({ params }) =>
    HttpResponse.json({ ...aStep(Number(params.seq)), payload: {} }),
  ),
  http.get(at("/runs/:id/plan"), () =>
    HttpResponse.json({ supports_changes: true, version: 0, items: [], change: null }),
  ),
  http.get(at("/runs/:id/step-matches"), () => HttpResponse.json({ items: [], total: 0, next: null })),
  http.get(at("/runs/:id/nodes"), () => HttpResponse.json({ items: [] })),
  http.get(at("/runs/:id/usage"), () => HttpResponse.json({ roles: [], points: [] })),
  http.get(at("/runs/:id/sources"), () => HttpResponse.json({ items: [], total: 0, is_complete: true })),
  http.get(at("/runs/:id/drafts"), () => HttpResponse.json({ items: [] })),
  http.get(at("/runs/:id/tree"), () => HttpResponse.json({ parent_id: null, children: [] })),
  http.get(at("/runs/:id/input-requests"), () => HttpResponse.json({ items: [] })),
  http.get(at("/runs/:id/files"), () => HttpResponse.json({ items: [] })),
  http.get(at("/runs/:id/report"), () => HttpResponse.json(aReport())),
  http.get(at("/runs/:id/report/versions"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/runs/:id/ratings"), () => HttpResponse.json([])),
  http.get(at("/threads/:id"), ({ params }) =>
    HttpResponse.json({ id: params.id, title: "", created_at: "2026-03-01T10:00:00Z", runs: [] }),
  ),
  http.get(at("/training-jobs"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/training-jobs/:id"), () => HttpResponse.json(aJob())),
  http.get(at("/training-jobs/:id/metrics"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/training-jobs/:id/events"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/policy-versions"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/prompt-libraries/:name/preview"), ({ params }) =>
    HttpResponse.json({
      name: params.name,
      start_version: "",
      job_id: null,
      runs: 0,
      rated_runs: 0,
      new_runs: 0,
      new_rated_runs: 0,
      new_groups: 0,
      comparisons: 0,
      withheld_runs: 0,
      waiting_candidate: "",
    }),
  ),
  http.get(at("/evaluations"), () => HttpResponse.json({ items: [], next: null })),
  http.get(at("/library"), () => HttpResponse.json({ items: [aSource()], next: null, total: 1 })),
  http.get(at("/library/collections"), () => HttpResponse.json([{ name: "undici", count: 41 }])),
  http.get(at("/library/sources/:id"), () => HttpResponse.json(aSource())),
  http.get(at("/library/status"), () => HttpResponse.json({ text_count: 1, embedding: null, reranks: false })),
  http.get(at("/library/search"), () => HttpResponse.json({ items: [], notices: [] })),
  http.get(at("/library/passages"), () =>
    HttpResponse.json({
      text_id: TEXT_ID,
      source_id: SOURCE_ID,
      title: "undici: Client",
      name: "docs/Client.md",
      start: 20,
      end: 48,
      before: "A client is made for one origin and ",
      text: "keeps one connection open",
      after: " until it is closed.",
      snapshot: "9f3c11aa22bb33cc44dd55ee66ff7788990021",
      char_count: 200,
    }),
  ),
);
