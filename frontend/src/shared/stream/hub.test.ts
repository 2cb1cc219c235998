import { expect, test } from "vitest";
import { aStep } from "@/testing/builders";
import { FakeSource } from "@/testing/fake-source";
import type { StreamEvent } from "./connection";
import { StreamHub } from "./hub";

/** A browser with tabs: one lock, one channel, and every stream that was opened. */
function browser() {
  const sources: FakeSource[] = [];
  const listeners = new Map<string, (message: unknown) => void>();
  const queue: { tab: string; leading: () => void }[] = [];
  let holder: string | null = null;
  let now = 0;
  const grant = () => {
    const next = holder === null ? queue.shift() : undefined;
    if (!next) return;
    holder = next.tab;
    next.leading();
  };
  const resign = (tab: string) => {
    const at = queue.findIndex((waiting) => waiting.tab === tab);
    if (at >= 0) queue.splice(at, 1);
    if (holder === tab) holder = null;
    grant();
  };
  const open = (tab: string) => {
    const timers: (() => void)[] = [];
    const hub = new StreamHub({
      tab,
      channel: {
        post: (message) => {
          for (const [other, hear] of [...listeners]) if (other !== tab) hear(structuredClone(message));
        },
        listen: (onMessage) => listeners.set(tab, onMessage),
      },
      lead: (leading) => {
        queue.push({ tab, leading });
        grant();
        return () => resign(tab);
      },
      open: (address) => {
        const source = new FakeSource(address);
        sources.push(source);
        return source.asEventSource();
      },
      after: (_, call) => {
        timers.push(call);
        return () => undefined;
      },
      now: () => now,
    });
    const received: StreamEvent[] = [];
    hub.onEvent((event) => received.push(event));
    return { hub, heard: received, tick: () => timers.splice(0).forEach((call) => void call()) };
  };
  return {
    open,
    sources,
    live: () => sources.filter((source) => !source.closed),
    pass: (ms: number) => {
      now += ms;
    },
    crash: (tab: string) => {
      listeners.delete(tab);
      resign(tab);
    },
  };
}

const stepOf = (run: string, seq: number) => ({ ...aStep(seq), run_id: run });

test("two tabs share one stream, and both receive every event", () => {
  const { open, live } = browser();
  const first = open("1");
  const second = open("2");
  first.hub.watch("a", 3);
  second.hub.watch("b", 9);
  expect(live().map((source) => source.cursor)).toEqual(["a:3,b:9"]);
  live()[0]?.send("step", stepOf("b", 10));
  expect(second.heard.map((event) => event.runId)).toEqual(["b"]);
  expect(first.heard).toEqual(second.heard);
});

test("when the leading tab closes, the next one continues from its own cursor", () => {
  const { open, live } = browser();
  const first = open("1");
  const second = open("2");
  first.hub.watch("a", 0);
  second.hub.watch("a", 0);
  live()[0]?.send("step", stepOf("a", 1));
  live()[0]?.send("step", stepOf("a", 2));
  first.hub.leave();
  expect(live().map((source) => source.cursor)).toEqual(["a:2"]);
  live()[0]?.send("step", stepOf("a", 3));
  expect(second.heard.map((event) => (event.data as { seq: number }).seq)).toEqual([1, 2, 3]);
});

test("a tab that was killed is replaced as leader as well", () => {
  const { open, live, crash, sources } = browser();
  open("1").hub.watch("a", 0);
  const second = open("2");
  second.hub.watch("b", 4);
  crash("1");
  sources[0]?.close();
  expect(live().at(-1)?.cursor).toBe("b:4");
});

test("a new leader requests the runs of the other tabs", () => {
  const { open, live } = browser();
  const first = open("1");
  first.hub.watch("a", 0);
  open("2").hub.watch("b", 4);
  open("3").hub.watch("c", 7);
  first.hub.leave();
  expect(live().map((source) => source.cursor)).toEqual(["b:4,c:7"]);
});

test("a tab that needs earlier steps of a followed run makes the stream start earlier", () => {
  const { open, live } = browser();
  open("1").hub.watch("a", 0);
  live()[0]?.send("step", stepOf("a", 1));
  live()[0]?.send("step", stepOf("a", 2));
  open("2").hub.watch("a", 1);
  expect(live().map((source) => source.cursor)).toEqual(["a:1"]);
});

test("a tab that needs only later steps of a followed run does not reopen the stream", () => {
  const { open, sources, live } = browser();
  open("1").hub.watch("a", 0);
  live()[0]?.send("step", stepOf("a", 1));
  open("2").hub.watch("a", 1);
  expect(sources).toHaveLength(1);
});

test("a run that no tab follows is no longer requested", () => {
  const { open, live } = browser();
  open("1").hub.watch("a", 0);
  const stop = open("2").hub.watch("b", 0);
  stop();
  expect(live().map((source) => source.cursor)).toEqual(["a:0"]);
});

test("a tab that has been silent for too long is removed at the next announcement", () => {
  const { open, live, pass } = browser();
  const first = open("1");
  first.hub.watch("a", 0);
  open("2").hub.watch("b", 0);
  pass(200_000);
  first.tick();
  expect(live().map((source) => source.cursor)).toEqual(["a:0"]);
});

test("every tab receives the state of the stream", () => {
  const { open, live } = browser();
  const first = open("1");
  first.hub.watch("a", 0);
  live()[0]?.open();
  const second = open("2");
  second.hub.watch("a", 0);
  expect(second.hub.state).toBe("open");
  live()[0]?.fail(false);
  expect([first.hub.state, second.hub.state]).toEqual(["lost", "lost"]);
});

test("a page that returns from the back-forward cache follows its runs again", () => {
  const { open, live } = browser();
  const only = open("1");
  only.hub.watch("a", 0);
  live()[0]?.send("step", stepOf("a", 1));
  only.hub.leave();
  expect(live()).toEqual([]);
  only.hub.rejoin();
  expect(live().map((source) => source.cursor)).toEqual(["a:1"]);
});

test("the end of a run ends its stream in every tab", () => {
  const { open, live } = browser();
  const first = open("1");
  first.hub.watch("a", 0);
  open("2").hub.watch("a", 0);
  live()[0]?.send("end", { run_id: "a" });
  first.tick();
  expect(live()).toEqual([]);
});
