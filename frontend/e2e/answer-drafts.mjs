// Answers of a model in a real browser while they are written. Needs a running stack with documents in its library and a
// model server that streams slowly. The exit code is 0 if every check passes.
//
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_QUESTION  the question
//   OFFING_ENGINES   JSON object: the engine of each role
//   OFFING_SHOTS     a folder for screenshots; none when empty
import assert from "node:assert/strict";
import { base, env, screenshots, signedIn } from "./browser.mjs";

const question = env("OFFING_QUESTION", "Who built the third Eddystone tower?");
const engines = JSON.parse(env("OFFING_ENGINES", "{}"));

function submitRun(page) {
  return page.evaluate(
    async ([text, chosen]) => {
      const { csrf_token } = await (await fetch("/api/v1/session")).json();
      const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf_token };
      const body = JSON.stringify({ question: text, graph: "agentflow", budget: { max_turns: 3 }, engines: chosen });
      const response = await fetch("/api/v1/runs", { method: "POST", headers, body });
      if (!response.ok) throw new Error(await response.text());
      return (await response.json()).id;
    },
    [question, engines],
  );
}

function countSteps(page, run, kind) {
  return page.evaluate(
    async ([id, only]) => (await (await fetch(`/api/v1/runs/${id}/steps?kind=${only}`)).json()).items.length,
    [run, kind],
  );
}

await signedIn(async (page) => {
  await page.getByRole("heading", { name: "What do you want to find out?" }).waitFor();
  const run = await submitRun(page);
  await page.goto(new URL(`/runs/${run}`, base).href);
  const drafts = page.getByRole("region", { name: "Answers being written" });
  await drafts.getByText("plan · being written").waitFor({ timeout: 120_000 });
  await drafts.getByText("third tower").waitFor();
  assert.equal(await countSteps(page, run, "plan"), 0, "the plan is visible before its step is recorded");
  await drafts.getByText("unverified until it is checked").waitFor({ timeout: 120_000 });
  await drafts.getByText("John Smeaton built it").waitFor();
  await screenshots(page, "answer-draft");
  assert.equal(await countSteps(page, run, "report"), 0, "the text of the report is visible before it is recorded");
  await page.reload();
  await drafts.getByText("John Smeaton built it").waitFor();
  await drafts.waitFor({ state: "detached", timeout: 120_000 });
  await page.getByText("Smeaton built it.").first().waitFor();
  assert.equal(await page.getByText("unverified until it is checked").count(), 0);
}, "the plan and the report were visible while they were written, and their steps replaced them");
