// @vitest-environment jsdom

import { QueryClient } from "@tanstack/react-query";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { aRun, RUN_ID } from "@/testing/builders";
import { at, server } from "@/testing/server";
import { prefetchScreen } from "./prefetch";

/** The paths that are requested while the session, which every view needs, is still unanswered. */
async function requestedFor(pathname: string, search = ""): Promise<string[]> {
  const paths: string[] = [];
  server.use(
    http.get(at("/session"), () => new Promise<never>(() => undefined)),
    http.get(at("/runs"), ({ request }) => {
      paths.push(new URL(request.url).pathname);
      return HttpResponse.json({ items: [], next: null });
    }),
    http.get(at("/runs/:id"), ({ request }) => {
      paths.push(new URL(request.url).pathname);
      return HttpResponse.json(aRun());
    }),
  );
  const client = new QueryClient();
  prefetchScreen(client, { pathname, search });
  const expected = client.getQueryCache().getAll().length - (pathname.startsWith("/shared/") ? 0 : 1);
  await vi.waitFor(() => expect(paths).toHaveLength(expected));
  return paths;
}

test.each([
  ["/", ["/api/v1/runs"]],
  ["/runs", ["/api/v1/runs"]],
  [`/runs/${RUN_ID}`, [`/api/v1/runs/${RUN_ID}`]],
  ["/library", []],
  ["/shared/a-token", []],
])("the data of %s is requested without waiting for the session", async (pathname, paths) => {
  expect(await requestedFor(pathname)).toEqual(paths);
});

test("a list with filters is left to its view, which reads them", async () => {
  expect(await requestedFor("/runs", "?state=failed")).toEqual([]);
});
