import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { server } from "@/testing/server";
import { failed, PAUSES, sendGroup } from "./send-group";

const FILES = ["a.md", "b.md"].map((name) => ({ name, file: new File(["text"], name) }));
const added = (name: string) => ({ name, outcome: "added", problem: "", source: null });

function answering(...statuses: number[]) {
  let asked = 0;
  server.use(
    http.post("*/api/v1/library", () => {
      const status = statuses[Math.min(asked, statuses.length - 1)] ?? 200;
      asked += 1;
      if (status === 200) return HttpResponse.json({ files: FILES.map(({ name }) => added(name)) });
      return HttpResponse.json({ title: "Busy", detail: "Other uploads.", remedy: "Later.", status }, { status });
    }),
  );
  return () => asked;
}

function waiting() {
  const waited: number[] = [];
  return { waited, wait: async (pause: number) => void waited.push(pause) };
}

test("a busy server is asked again until it takes the files", async () => {
  const asked = answering(503, 429, 200);
  const { waited, wait } = waiting();
  expect((await sendGroup(FILES, "papers", wait)).map((one) => one.outcome)).toEqual(["added", "added"]);
  expect([asked(), waited]).toEqual([3, PAUSES.slice(0, 2)]);
});

test("files that a busy server never takes are reported one by one", async () => {
  const asked = answering(503);
  const { waited, wait } = waiting();
  expect(await sendGroup(FILES, "", wait)).toEqual(failed(FILES, "Other uploads. Later."));
  expect([asked(), waited]).toEqual([PAUSES.length + 1, PAUSES]);
});

test("a refusal is not asked for twice", async () => {
  const asked = answering(422);
  const { waited, wait } = waiting();
  expect((await sendGroup(FILES, "", wait)).map((one) => one.outcome)).toEqual(["failed", "failed"]);
  expect([asked(), waited]).toEqual([1, []]);
});
