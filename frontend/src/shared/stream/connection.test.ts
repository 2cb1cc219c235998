import { expect, test } from "vitest";
import { aStep, RUN_ID } from "@/testing/builders";
import { FakeSource } from "@/testing/fake-source";
import { Connection, readEvent, type StreamEvent } from "./connection";

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

test("a stream opened anew goes on after the last step that came", () => {
  const { connection, sources, timers } = connected();
  connection.follow(new Map([[RUN_ID, 4]]));
  expect(sources[0]?.cursor).toBe(`${RUN_ID}:4`);
  sources[0]?.says("step", aStep(5));
  sources[0]?.says("step", aStep(6));
  sources[0]?.breaks(true);
  timers[0]?.call();
  expect(sources[1]?.cursor).toBe(`${RUN_ID}:6`);
});

test("while the browser tries again by itself nothing else is opened", () => {
  const { connection, sources, states, timers } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  sources[0]?.breaks(false);
  expect(timers).toEqual([]);
  expect(states.at(-1)).toBe("lost");
  sources[0]?.opens();
  expect(states.at(-1)).toBe("open");
});

test("each failure in a row waits longer, up to a limit, and an open stream starts over", () => {
  const { connection, sources, timers } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  for (let round = 0; round < 8; round += 1) {
    sources.at(-1)?.breaks(true);
    timers.at(-1)?.call();
  }
  expect(timers.map((timer) => timer.ms)).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000]);
  sources.at(-1)?.opens();
  sources.at(-1)?.breaks(true);
  expect(timers.at(-1)?.ms).toBe(1_000);
});

test("the end of the last run closes the stream", () => {
  const { connection, sources, states } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  sources[0]?.says("end", { run_id: RUN_ID });
  expect(sources[0]?.closed).toBe(true);
  expect(states.at(-1)).toBe("idle");
});

test("a broken stream that was replaced is not mourned", () => {
  const { connection, sources, timers } = connected();
  connection.follow(new Map([[RUN_ID, 0]]));
  connection.follow(new Map([["other", 0]]));
  sources[0]?.breaks(true);
  expect(timers).toEqual([]);
});

test("data that is no event of a run is dropped", () => {
  expect(readEvent("step", "{")).toBeNull();
  expect(readEvent("live", "null")).toBeNull();
  expect(readEvent("step", '{"seq":1}')).toBeNull();
  expect(readEvent("run", '{"id":"x"}')?.run).toBe("x");
});
