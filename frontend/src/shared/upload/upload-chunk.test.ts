// @vitest-environment jsdom

import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { server } from "@/testing/server";
import { failedResults, RETRY_DELAYS_MS, uploadChunk } from "./upload-chunk";

const FILES = ["a.md", "b.md"].map((name) => ({ name, file: new File(["text"], name) }));
const added = (name: string) => ({ name, outcome: "added", problem: "", source: null });

function respondWith(...statuses: number[]) {
  let count = 0;
  server.use(
    http.post("*/api/v1/library", () => {
      const status = statuses[Math.min(count, statuses.length - 1)] ?? 200;
      count += 1;
      if (status === 200) return HttpResponse.json({ files: FILES.map(({ name }) => added(name)) });
      return HttpResponse.json({ title: "Busy", detail: "Other uploads.", remedy: "Later.", status }, { status });
    }),
  );
  return () => count;
}

function waiting() {
  const delays: number[] = [];
  return { waited: delays, wait: async (pause: number) => void delays.push(pause) };
}

test("an upload to a busy server is retried until it succeeds", async () => {
  const requestCount = respondWith(503, 429, 200);
  const { waited, wait } = waiting();
  expect((await uploadChunk(FILES, "papers", wait)).map((one) => one.outcome)).toEqual(["added", "added"]);
  expect([requestCount(), waited]).toEqual([3, RETRY_DELAYS_MS.slice(0, 2)]);
});

test("files that a busy server never accepts are reported individually", async () => {
  const requestCount = respondWith(503);
  const { waited, wait } = waiting();
  expect(await uploadChunk(FILES, "", wait)).toEqual(failedResults(FILES, "Other uploads. Later."));
  expect([requestCount(), waited]).toEqual([RETRY_DELAYS_MS.length + 1, RETRY_DELAYS_MS]);
});

test("a rejected upload is not retried", async () => {
  const requestCount = respondWith(422);
  const { waited, wait } = waiting();
  expect((await uploadChunk(FILES, "", wait)).map((one) => one.outcome)).toEqual(["failed", "failed"]);
  expect([requestCount(), waited]).toEqual([1, []]);
});
