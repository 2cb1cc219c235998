import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { RunStatistics } from "@/shared/api/asking";
import { aGraph, aProvider, aRun, aSource, aTenant, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

type Body = Record<string, unknown>;

/** Record the requests for runs, and answer each with a run of its own. */
function recordRuns(): Body[] {
  const bodies: Body[] = [];
  server.use(
    http.post(at("/runs"), async ({ request }) => {
      bodies.push((await request.json()) as Body);
      return HttpResponse.json(aRun({ id: RUN_ID.replace(/1$/, String(bodies.length)) }), { status: 201 });
    }),
  );
  return bodies;
}

async function openOptions(question = "How does pooling work?") {
  const page = renderPage("/");
  await page.user.type(await screen.findByRole("textbox", { name: "Question" }), question);
  await page.user.click(screen.getByRole("button", { name: "Options" }));
  await screen.findByRole("textbox", { name: "Maximum cost, $" });
  return page;
}

const STATISTICS: RunStatistics = {
  graph: "agentflow",
  models: null,
  runs: 34,
  turns: { low: 3, median: 5, high: 8 },
  seconds_per_turn: { low: 5, median: 7, high: 10 },
  tokens_per_turn: { low: 1000, median: 2000, high: 3000 },
  cost_usd_per_turn: { low: 0.01, median: 0.015, high: 0.02 },
};

test("the first view makes one request for the runs and none for the form", async () => {
  const paths: string[] = [];
  server.events.on("request:start", ({ request }) => void paths.push(new URL(request.url).pathname));
  server.use(http.get(at("/runs"), () => HttpResponse.json({ items: [aRun({ minimap: "np" })], next: null })));
  renderPage("/");
  await screen.findByText("How does undici reuse connections?");
  // What the frame of the page needs: the session, the tenant with its default, and the bell.
  const frame = /\/(session|tenant|notifications)$/;
  expect(paths.filter((path) => !frame.test(path))).toEqual(["/api/v1/runs"]);
  server.events.removeAllListeners();
});

test("every option of the form reaches the request", async () => {
  const bodies = recordRuns();
  server.use(http.get(at("/mcp-servers"), () => HttpResponse.json([{ name: "tickets", tools: [] }])));
  const { user, router } = await openOptions();
  const fill = async (label: string, text: string) => {
    const field = screen.getByLabelText(label);
    await user.clear(field);
    await user.click(field);
    await user.paste(text);
  };
  await user.click(screen.getByLabelText("Search the web and read public pages"));
  await fill("Only these domains", "example.org");
  await fill("Never these domains", "ads.example.org");
  await user.click(screen.getByLabelText("Run Python code in a sandbox"));
  await user.click(await screen.findByLabelText("Use the tools of tickets"));
  await fill("Maximum tokens", "50000");
  await user.selectOptions(screen.getByLabelText("Length"), "long");
  await fill("Language of the report", "zh");
  await fill("Outline", "Summary");
  await user.click(screen.getByLabelText("Ask me what is unclear"));
  await user.click(screen.getByLabelText("Show me the plan first"));
  await fill("Maximum number of turns", "2048");
  await user.click(screen.getByText("Ask", { selector: "button" }));
  await waitFor(() => expect(router.state.location.pathname).toMatch(/^\/runs\//));
  expect(bodies[0]).toMatchObject({
    budget: { depth: "deep", max_turns: 2048, max_tokens: 50000 },
    scope: {
      web: true,
      code: true,
      mcp: ["tickets"],
      only_domains: ["example.org"],
      excluded_domains: ["ads.example.org"],
    },
    report_style: { length: "long", language: "zh", template: "Summary" },
    interactions: ["clarify", "plan_review"],
  });
});

test("a model is found with its price, and a preset brings its turns", async () => {
  const bodies = recordRuns();
  const details = { model: "openai/b", context_tokens: 400000, input_usd: 0.25, output_usd: 2 };
  const openai = { name: "litellm:openai", available: true, models: ["openai/a", "openai/b"], note: "", texts: {} };
  server.use(
    http.get(at("/engines"), () => HttpResponse.json([{ ...openai, model_details: [details], offered_at: "" }])),
    http.get(at("/presets"), () =>
      HttpResponse.json([
        {
          name: "fast",
          engines: { all: { engine: "litellm", model: "openai/a" } },
          budget: { max_turns: 4 },
          built_in: true,
        },
      ]),
    ),
  );
  const { user } = await openOptions();
  await user.click(await screen.findByRole("radio", { name: /Preset fast/ }));
  expect(screen.getByRole("radio", { name: "Quick" })).toBeChecked();
  await user.type(screen.getByRole("searchbox", { name: "Find a model, or enter one" }), "openai b");
  const model = screen.getByRole("radio", { name: /openai\/b/ });
  expect(model).toHaveAccessibleName(/400 k tokens of context.*\$0\.250 in and \$2\.00 out/);
  await user.click(model);
  expect(screen.getByText(/question and passages to openai/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(bodies).toHaveLength(1));
  expect(bodies[0]).toMatchObject({ budget: { max_turns: 4 }, engines: { planner: { model: "openai/b" } } });
  expect(bodies[0]).not.toHaveProperty("preset");
});

test("another graph drops interactions that it does not have", async () => {
  const bodies = recordRuns();
  server.use(
    http.get(at("/graphs"), () =>
      HttpResponse.json([aGraph(), aGraph({ name: "plain", title: "Plain", interactions: [] })]),
    ),
  );
  const { user } = await openOptions();
  await user.click(await screen.findByRole("checkbox", { name: "Show me the plan first" }));
  await user.click(screen.getByRole("radio", { name: /^Plain/ }));
  expect(screen.getByText("Runs of this graph begin at once and ask nothing.")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(bodies[0]).toMatchObject({ graph: "plain", interactions: [] }));
});

test("an invalid option is not sent, is marked, and opens the options", async () => {
  const bodies = recordRuns();
  const { user } = await openOptions();
  await user.type(screen.getByRole("textbox", { name: "Maximum cost, $" }), "two");
  await user.click(screen.getByRole("button", { name: "Options" }));
  await user.click(screen.getByRole("button", { name: "Ask" }));
  const field = await screen.findByRole("textbox", { name: "Maximum cost, $" });
  expect(field).toBeInvalid();
  expect(field).toHaveAccessibleDescription(/number of dollars/);
  expect(bodies).toEqual([]);
});

test("what the server rejects is shown at its field", async () => {
  server.use(
    http.post(at("/runs"), () =>
      problem(422, "Unprocessable", { detail: "the planner is answered by openai/a", field: "scope.offline" }),
    ),
  );
  const { user } = await openOptions();
  await user.click(screen.getByRole("checkbox", { name: "Offline only" }));
  expect(screen.getByText(/^Nothing leaves this machine\. The server rejects a model/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect(await screen.findAllByText(/answered by openai\/a/)).toHaveLength(2);
});

test("the form knows that a stored provider on this machine sends nothing elsewhere once the options are loaded", async () => {
  server.use(
    http.get(at("/tenant"), () => HttpResponse.json(aTenant({ default_engine: "litellm:lab/qwen" }))),
    http.get(at("/providers"), () =>
      HttpResponse.json([aProvider({ name: "lab", api_base: "http://127.0.0.1:9001/v1" })]),
    ),
  );
  const { user } = renderPage("/");
  expect(await screen.findByText(/passages to the model lab\/qwen, if it is elsewhere/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Options" }));
  expect(await screen.findByText("Nothing leaves this machine.")).toBeVisible();
});

test("time and cost are those of past runs, and nothing is invented without any", async () => {
  const first = await openOptions();
  expect(await screen.findByText(/There are no past runs of this graph to tell time and cost from/)).toBeVisible();
  first.unmount();
  server.use(http.get(at("/run-statistics"), () => HttpResponse.json({ items: [STATISTICS] })));
  renderPage("/");
  expect(
    await screen.findByText(
      /All 12 turns take 1 min to 2 min and \$0\.12 to \$0\.24\. Based on 34 past runs of this graph\. Half of them ended within 5 turns\./,
    ),
  ).toBeVisible();
});

test("a way to ask is saved, applied, renamed and deleted", async () => {
  const calls: [string, unknown][] = [];
  const items: { id: string; name: string; settings: Body }[] = [];
  server.use(
    http.get(at("/question-presets"), () => HttpResponse.json({ items })),
    http.post(at("/question-presets"), async ({ request }) => {
      const body = (await request.json()) as { name: string; settings: Body };
      calls.push(["save", body]);
      const saved = { id: RUN_ID, ...body, created_at: "", updated_at: "" };
      items.push(saved);
      return HttpResponse.json(saved, { status: 201 });
    }),
    http.patch(at("/question-presets/:id"), async ({ request }) => {
      const body = (await request.json()) as { name: string };
      calls.push(["change", body]);
      Object.assign(items[0] ?? {}, body);
      return HttpResponse.json(items[0]);
    }),
    http.delete(at("/question-presets/:id"), () => {
      calls.push(["delete", null]);
      items.pop();
      return new HttpResponse(null, { status: 204 });
    }),
  );
  const { user } = await openOptions();
  await user.click(screen.getByRole("radio", { name: "Marathon" }));
  await user.click(screen.getByRole("button", { name: "Save these options…" }));
  await user.type(screen.getByRole("textbox", { name: "Name" }), "Long work{Enter}");
  await waitFor(() =>
    expect(calls[0]).toMatchObject(["save", { name: "Long work", settings: { budget: { max_turns: 256 } } }]),
  );
  expect(calls[0]?.[1]).not.toHaveProperty("settings.question");
  await user.click(await screen.findByRole("button", { name: "Reset to defaults" }));
  expect(screen.getByRole("radio", { name: "Standard" })).toBeChecked();
  const select = screen.getByRole("combobox", { name: "Saved ways to ask" });
  await user.selectOptions(select, "");
  await user.selectOptions(select, "Long work");
  await waitFor(() => expect(screen.getByRole("radio", { name: "Marathon" })).toBeChecked());
  await user.click(screen.getByRole("button", { name: "Rename…" }));
  const name = screen.getByRole("textbox", { name: "Name" });
  await user.clear(name);
  await user.type(name, "Marathon runs{Enter}");
  await screen.findByRole("option", { name: "Marathon runs" });
  await user.click(screen.getByRole("button", { name: "Delete" }));
  await screen.findByRole("option", { name: "None is saved yet" });
  expect(calls.map(([kind]) => kind)).toEqual(["save", "change", "delete"]);
});

test("the palette applies a saved way to ask", async () => {
  const settings = { graph: "agentflow", budget: { depth: "deep", max_turns: 40 }, scope: { web: true }, engines: {} };
  const preset = { id: RUN_ID, name: "News", settings, created_at: "", updated_at: "" };
  server.use(http.get(at("/question-presets"), () => HttpResponse.json({ items: [preset] })));
  const { user, router } = renderPage("/library");
  await user.click(await screen.findByRole("button", { name: "Find" }));
  await user.click(await screen.findByRole("option", { name: /Ask as in “News”/ }));
  await waitFor(() => expect(screen.getByRole("radio", { name: "Deep" })).toBeChecked());
  expect(await screen.findByRole("checkbox", { name: "Search the web and read public pages" })).toBeChecked();
  await waitFor(() => expect(router.state.location.search).toEqual({}));
  expect(screen.getByRole("radio", { name: "Deep" })).toBeChecked();
});

test("each line becomes a run after a confirmation, and a line that fails is kept with its reason", async () => {
  const questions: string[] = [];
  server.use(
    http.get(at("/run-statistics"), () => HttpResponse.json({ items: [STATISTICS] })),
    http.post(at("/runs"), async ({ request }) => {
      const { question } = (await request.json()) as { question: string };
      questions.push(question);
      if (question.startsWith("Second")) return problem(409, "Conflict", { detail: "It was rejected." });
      return HttpResponse.json(aRun({ question }), { status: 201 });
    }),
  );
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("checkbox", { name: "Several questions" }));
  const text = screen.getByRole("textbox", { name: "Questions, one per line" });
  await user.click(text);
  await user.paste("1. First question?\n\n- Second question?\nFirst question?\nThird question?");
  await user.click(await screen.findByRole("button", { name: "Ask 3 questions…" }));
  const dialog = within(screen.getByRole("dialog", { name: "Ask 3 questions" }));
  expect(dialog.getByText(/they take 3 min to 6 min and \$0\.36 to \$0\.72 together/)).toBeVisible();
  expect(questions).toEqual([]);
  await user.click(dialog.getByRole("button", { name: "Start 3 runs" }));
  expect(await screen.findByText("It was rejected.")).toBeVisible();
  expect(await screen.findByRole("link", { name: "Third question?" })).toBeVisible();
  expect(questions).toEqual(["First question?", "Second question?", "Third question?"]);
  await waitFor(() => expect(text).toHaveValue("Second question?"));
});

test("a line that is too short stops all of them before anything is asked", async () => {
  const bodies = recordRuns();
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("checkbox", { name: "Several questions" }));
  await user.click(screen.getByRole("textbox", { name: "Questions, one per line" }));
  await user.paste("First question?\nno");
  expect(await screen.findByText(/A question needs 3 to 8,000 characters\. Change or remove “no”\./)).toBeVisible();
  expect(screen.getByRole("button", { name: "Ask 2 questions…" })).toBeDisabled();
  expect(bodies).toEqual([]);
});

test("pasted files are attached", async () => {
  let uploads = 0;
  server.use(
    http.post(at("/library"), () => {
      uploads += 1;
      return HttpResponse.json({ files: [] });
    }),
  );
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("textbox", { name: "Question" }));
  const data = { files: [new File(["a"], "a.md")], types: ["Files"], getData: () => "" };
  await user.paste(data as unknown as DataTransfer);
  await waitFor(() => expect(uploads).toBe(1));
});

test("attached documents replace the collections in the options too", async () => {
  server.use(
    http.post(at("/library"), () =>
      HttpResponse.json({
        files: [{ name: "a.md", outcome: "added", source: aSource({ collection: "" }), problem: "" }],
      }),
    ),
  );
  const { user } = await openOptions();
  const scope = screen.getByRole("group", { name: "Documents" });
  expect(await within(scope).findByRole("button", { name: /All documents/ })).toBeVisible();
  await user.click(screen.getByRole("textbox", { name: "Question" }));
  const data = { files: [new File(["a"], "a.md")], types: ["Files"], getData: () => "" };
  await user.paste(data as unknown as DataTransfer);
  expect(await within(scope).findByText("Those attached to the question")).toBeVisible();
  expect(within(scope).queryByRole("button", { name: /All documents/ })).toBeNull();
});

const SEARCHING = {
  name: "searching",
  policy: { rules: [{ tool: "web_search", allow_other_args: true, max_calls: 20 }] },
  updated_at: "2026-01-01T12:00:00Z",
};

/** Serve tool policies, which a test can change. */
function storeToolPolicies() {
  const stored: { name: string; policy: Body | null; updated_at: string }[] = [
    SEARCHING,
    { ...SEARCHING, name: "older", policy: null },
  ];
  server.use(http.get(at("/tool-policies"), () => HttpResponse.json(stored)));
  return stored;
}

test("a stored tool policy reaches the request as it is stored at that moment", async () => {
  const bodies = recordRuns();
  const stored = storeToolPolicies();
  const { user } = await openOptions();
  const select = await screen.findByRole("combobox", { name: "Tool policy" });
  expect(screen.getByRole("option", { name: "older (this version of Offing cannot read it)" })).toBeDisabled();
  await user.selectOptions(select, "searching");
  expect(screen.getByText("tool policy searching")).toBeVisible();
  const tightened = { rules: [{ tool: "web_search", max_calls: 1 }] };
  stored[0] = { ...SEARCHING, policy: tightened };
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(bodies).toHaveLength(1));
  expect(bodies[0]?.tool_policy).toEqual(tightened);
});

test("a question without a tool policy names none", async () => {
  const bodies = recordRuns();
  storeToolPolicies();
  const { user } = await openOptions();
  expect(await screen.findByRole("combobox", { name: "Tool policy" })).toHaveDisplayValue("The default");
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(bodies).toHaveLength(1));
  expect(bodies[0]).not.toHaveProperty("tool_policy");
});

test("without a stored tool policy, the options lead to where one is written", async () => {
  await openOptions();
  expect(await screen.findByRole("link", { name: "Write your own" })).toHaveAttribute(
    "href",
    "/settings/tool-policies",
  );
  expect(screen.queryByRole("combobox", { name: "Tool policy" })).toBeNull();
});

test("a tool policy that was deleted meanwhile is an error of its field, and nothing is sent", async () => {
  const bodies = recordRuns();
  const stored = storeToolPolicies();
  const { user } = await openOptions();
  await user.selectOptions(await screen.findByRole("combobox", { name: "Tool policy" }), "searching");
  await user.click(screen.getByRole("button", { name: "Options" }));
  stored.shift();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  const select = await screen.findByRole("combobox", { name: "Tool policy" });
  expect(select).toBeInvalid();
  expect(select).toHaveAccessibleDescription(/searching is no longer stored\. Select another one, or the default\./);
  expect(bodies).toEqual([]);
  await user.selectOptions(select, "");
  expect(select).toBeValid();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(bodies).toHaveLength(1));
});

test("several questions have the same tool policy, and none is sent without it", async () => {
  const bodies = recordRuns();
  const stored = storeToolPolicies();
  const { user } = await openOptions("First question?");
  const select = await screen.findByRole("combobox", { name: "Tool policy" });
  await user.selectOptions(select, "searching");
  await user.click(screen.getByRole("checkbox", { name: "Several questions" }));
  const text = screen.getByRole("textbox", { name: "Questions, one per line" });
  await user.click(text);
  await user.paste("\nSecond question?");
  const policy = stored.shift();
  const askBoth = async () => {
    await user.click(await screen.findByRole("button", { name: "Ask 2 questions…" }));
    await user.click(screen.getByRole("button", { name: "Start 2 runs" }));
  };
  await askBoth();
  await waitFor(() => expect(select).toBeInvalid());
  expect(text).toHaveValue("First question?\nSecond question?");
  expect(bodies).toEqual([]);
  if (policy) stored.unshift(policy);
  await askBoth();
  await waitFor(() => expect(bodies).toHaveLength(2));
  expect(bodies.map(({ tool_policy }) => tool_policy)).toEqual([SEARCHING.policy, SEARCHING.policy]);
});

test("a saved way to ask keeps the name of its tool policy; one without a name keeps the selected", async () => {
  storeToolPolicies();
  const saved: Body[] = [];
  const settings = { graph: "agentflow", budget: { depth: "deep", max_turns: 40 }, scope: { web: true }, engines: {} };
  const preset = { id: RUN_ID, name: "News", settings, created_at: "", updated_at: "" };
  server.use(
    http.get(at("/question-presets"), () => HttpResponse.json({ items: [preset] })),
    http.patch(at("/question-presets/:id"), async ({ request }) => {
      saved.push((await request.json()) as Body);
      return HttpResponse.json(preset);
    }),
  );
  const { user } = await openOptions();
  const select = await screen.findByRole("combobox", { name: "Tool policy" });
  await user.selectOptions(select, "searching");
  await user.selectOptions(screen.getByRole("combobox", { name: "Saved ways to ask" }), "News");
  await waitFor(() => expect(screen.getByRole("radio", { name: "Deep" })).toBeChecked());
  expect(select).toHaveDisplayValue("searching");
  await user.click(screen.getByRole("button", { name: "Update" }));
  await waitFor(() => expect(saved).toHaveLength(1));
  expect(saved[0]).toHaveProperty("settings.tool_policy", "searching");
});

test.each([
  ["searching", "searching"],
  ["", "The default"],
])("applying a way to ask with the tool policy “%s” selects %s", async (policy, shown) => {
  storeToolPolicies();
  const settings = { graph: "agentflow", budget: { max_turns: 40 }, scope: {}, engines: {}, tool_policy: policy };
  const preset = { id: RUN_ID, name: "News", settings, created_at: "", updated_at: "" };
  server.use(http.get(at("/question-presets"), () => HttpResponse.json({ items: [preset] })));
  const { user } = await openOptions();
  const select = await screen.findByRole("combobox", { name: "Tool policy" });
  await user.selectOptions(select, policy ? "The default" : "searching");
  await user.selectOptions(screen.getByRole("combobox", { name: "Saved ways to ask" }), "News");
  await waitFor(() => expect(select).toHaveDisplayValue(shown));
});

test("the options of an earlier version of the page are completed", async () => {
  sessionStorage.setItem("offing.draft.local:question.settings", JSON.stringify({ turns: 40, web: true }));
  renderPage("/");
  expect(await screen.findByRole("radio", { name: "Deep" })).toBeChecked();
  expect(screen.getByText("web")).toBeVisible();
  expect(screen.queryByText(/tool policy/)).toBeNull();
});
