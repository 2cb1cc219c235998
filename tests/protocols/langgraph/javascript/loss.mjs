// What the accumulators of React's `useStream` show of two runs whose worker is lost while a model writes: the one of the
// runs' streams, and the one of the thread-centric protocol. The exit code is 0 if every check passes.
//
//   OFFING_URL     the address of LangGraph's server API
//   OFFING_KEY     a key
//   OFFING_FOLDER  where the folders `run` and `thread` are: the file `seen` tells that the first attempt has written its
//                  text, `open` lets the graph's node end
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { Client } from "@langchain/langgraph-sdk";
import { StreamController } from "@langchain/langgraph-sdk/stream";
import { MessageTupleManager, StreamManager } from "@langchain/langgraph-sdk/ui";

const { OFFING_URL, OFFING_KEY, OFFING_FOLDER } = process.env;
const client = new Client({ apiUrl: OFFING_URL, apiKey: OFFING_KEY });
const attempt = (number) => `Attempt ${number} tells this`;
const question = { role: "user", content: "Begin.", id: "question" };

/** Watch what is shown: tell when the first attempt is there, let the node end when only the second is. */
function watch(folder, read) {
  const shown = [];
  return {
    shown,
    look() {
      const texts = read();
      if (JSON.stringify(texts) === JSON.stringify(shown.at(-1))) return;
      shown.push(texts);
      if (texts.at(-1) === attempt(1)) writeFileSync(`${folder}/seen`, "");
      if (texts.at(-1) === attempt(2)) writeFileSync(`${folder}/open`, "");
    },
  };
}

function check(shown) {
  const first = shown.findIndex((texts) => texts.at(-1) === attempt(1));
  const withdrawn = shown.findIndex((texts, at) => at > first && !texts.some((text) => text.startsWith("Attempt 1")));
  assert.ok(first >= 0 && withdrawn > first, JSON.stringify(shown));
  const later = shown.slice(withdrawn).flat();
  assert.ok(!later.some((text) => text.startsWith("Attempt 1")), JSON.stringify(shown));
  assert.deepEqual(shown.at(-1), ["Begin.", attempt(2)]);
}

async function runStream() {
  const folder = `${OFFING_FOLDER}/run`;
  const { thread_id } = await client.threads.create();
  const manager = new StreamManager(new MessageTupleManager(), { throttle: false });
  const watched = watch(folder, () => (manager.values?.messages ?? []).map((one) => one.content));
  manager.subscribe(watched.look);
  const input = { messages: [question], folder };
  await manager.start(
    (signal) =>
      client.runs.stream(thread_id, "report", { input, streamMode: ["messages-tuple", "values", "updates"], signal }),
    {
      initialValues: { messages: [] },
      getMessages: (values) => values.messages ?? [],
      setMessages: (values, messages) => ({ ...values, messages }),
      callbacks: {},
    },
  );
  assert.equal(manager.error, undefined);
  check(watched.shown);
}

const textOf = ({ content }) =>
  typeof content === "string" ? content : content.map((block) => block.text ?? "").join("");

async function threadStream() {
  const folder = `${OFFING_FOLDER}/thread`;
  const { thread_id } = await client.threads.create();
  const controller = new StreamController({ client, assistantId: "report", threadId: thread_id });
  await controller.hydrate();
  const watched = watch(folder, () => controller.rootStore.getSnapshot().messages.map(textOf));
  controller.rootStore.subscribe(watched.look);
  await controller.submit({ messages: [question], folder });
  assert.equal(controller.rootStore.getSnapshot().error, undefined);
  check(watched.shown);
}

await Promise.all([runStream(), threadStream()]);
console.log("The accumulators show each message once.");
process.exit(0);
