import { expect, test } from "vitest";
import { aStep, RUN_ID } from "@/testing/builders";
import { FakeSource } from "@/testing/fake-source";
import { Connection, parseEvent, type StreamEvent } from "./connection";

function connected() {
  const sources: FakeSource[] = [];
  const events: StreamEvent[] = [];
  const states: string[] = [];
  const timers: { ms: number; call: () => void }[] = [];
  const connection = new Connection({
    open: (address) => {
      const source = new FakeSource(address);
      sources.push(source);
      return source.asEventSource();
    },
    onEvent: (event) => events.push(event),
    onState: (state) => states.push(state),
    after: (ms, call) => {
      timers.push({ ms, call });
      return () => undefined;
    },
  });
  return { connection, sources, events, states, timers };
}

test("a reopened stream continues after the last step received", () => {
  const { connection, sources, timers } = connected();
  connection.follow(new Map([[RUN_ID, 4]]));
  expect(sources[0]?.cursor).toBe(`${RUN_ID}:4`);
  sources[0]?.send("step", aStep(5));
  sources[0]?.send("step", aStep(6));
  sources[0]?.fail(true);
  timers[0]?.call();
  expect(sources[1]?.cursor).toBe(`${RUN_ID}:6`);
});

test("while the browser reconnects on its own, no other stream is opened", () => {
  const { connection, sources, states, timers } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  sources[0]?.fail(false);
  expect(timers).toEqual([]);
  expect(states.at(-1)).toBe("lost");
  sources[0]?.open();
  expect(states.at(-1)).toBe("open");
});

test("the delay grows with consecutive failures up to a limit, and is reset by an open stream", () => {
  const { connection, sources, timers } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  for (let round = 0; round < 8; round += 1) {
    sources.at(-1)?.fail(true);
    timers.at(-1)?.call();
  }
  expect(timers.map((timer) => timer.ms)).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000]);
  sources.at(-1)?.open();
  sources.at(-1)?.fail(true);
  expect(timers.at(-1)?.ms).toBe(1_000);
});

test("the end of the last run closes the stream", () => {
  const { connection, sources, states } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  sources[0]?.send("end", { run_id: RUN_ID });
  expect(sources[0]?.closed).toBe(true);
  expect(states.at(-1)).toBe("idle");
});

test("an error of a replaced stream is ignored", () => {
  const { connection, sources, timers } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  connection.follow(new Map([["other", 0]]));
  sources[0]?.fail(true);
  expect(timers).toEqual([]);
});

test("data that is not an event of a run is dropped", () => {
  expect(parseEvent("step", "{")).toBeNull();
  expect(parseEvent("live", "null")).toBeNull();
  expect(parseEvent("step", '{"seq":1}')).toBeNull();
  expect(parseEvent("run", '{"id":"x"}')?.runId).toBe("x");
});
