// LangGraph's JavaScript client against a running Offing. The exit code is 0 if every check passes.
//
//   OFFING_URL  the address of LangGraph's server API
//   OFFING_KEY  a key
import assert from "node:assert/strict";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: process.env.OFFING_URL, apiKey: process.env.OFFING_KEY });
const greeting = { messages: [{ role: "user", content: "salt" }] };
const SAID = "You said salt and so on";

async function collect(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

async function collectTexts(messages) {
  const texts = [];
  for await (const message of messages) texts.push((await collect(message.text)).join(""));
  return texts;
}

async function assistantsAndThreads() {
  const [found] = await client.assistants.search({ graphId: "trail" });
  assert.equal(found.graph_id, "trail");
  const thread = await client.threads.create({ metadata: { made: "by the JavaScript client" } });
  const matches = await client.threads.search({ metadata: { made: "by the JavaScript client" } });
  assert.ok(matches.some((one) => one.thread_id === thread.thread_id));
  await client.runs.wait(thread.thread_id, "trail", { input: { seen: ["input"] } });
  const state = await client.threads.getState(thread.thread_id);
  assert.deepEqual(state.values, { seen: ["input", "first", "second"] });
}

async function streamsAndJoins() {
  const { thread_id } = await client.threads.create();
  const options = { input: greeting, streamMode: ["messages-tuple", "values"], streamResumable: true };
  const parts = await collect(client.runs.stream(thread_id, "chatter", options));
  const text = parts.filter((part) => part.event === "messages").map((part) => part.data[0].content);
  assert.equal(text.join(""), SAID);
  const { run_id } = parts[0].data;
  const all = await collect(client.runs.joinStream(thread_id, run_id, { lastEventId: "-1" }));
  assert.deepEqual(all, parts);
  const rest = await collect(client.runs.joinStream(thread_id, run_id, { lastEventId: parts[3].id }));
  assert.deepEqual(rest.slice(1), parts.slice(4));
}

async function interrupts() {
  const { thread_id } = await client.threads.create();
  const shown = await client.runs.wait(thread_id, "approval", { input: { topic: "go" } });
  assert.deepEqual(shown.__interrupt__[0].value, { question: "May I go?" });
  const done = await client.runs.wait(thread_id, "approval", { command: { resume: "yes" } });
  assert.deepEqual(done.decisions, ["yes"]);
}

async function threadProtocol() {
  const talk = client.threads.stream({ assistantId: "chatter" });
  const reading = collectTexts(talk.messages); // before the run, which may end at once
  await talk.run.start({ input: greeting });
  assert.deepEqual(await reading, [SAID]);
  await talk.close();
  const thread = client.threads.stream({ assistantId: "approval" });
  await thread.run.start({ input: { topic: "go" } });
  const states = await collect(thread.values);
  assert.deepEqual(states.at(-1), { topic: "go", decisions: [] });
  assert.deepEqual(thread.interrupts[0].payload, { question: "May I go?" });
  const [{ interruptId: interrupt_id, namespace }] = thread.interrupts;
  await thread.input.respond({ interrupt_id, namespace, response: "yes" });
  const course = await thread.subscribe(["lifecycle"]);
  for await (const event of course) if (event.params.data.event === "completed") break;
  await thread.close();
  const state = await client.threads.getState(thread.threadId);
  assert.deepEqual(state.values.decisions, ["yes"]);
}

for (const check of [assistantsAndThreads, streamsAndJoins, interrupts, threadProtocol]) {
  await check();
  console.log(`${check.name}: passed`);
}
process.exit(0);
