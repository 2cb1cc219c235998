import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { aModel, aPreset, aProvider, aProviderTest, aTenant } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const KEY = "sk-c4n4ry-of-the-page";

interface Recorded {
  path: string;
  body: unknown;
}

/** Record what is stored, and answer as the server does. */
function recordWrites(test = aProviderTest()): Recorded[] {
  const writes: Recorded[] = [];
  const record = async (request: Request) => {
    const body = request.method === "DELETE" ? null : await request.json();
    writes.push({ path: `${request.method} ${new URL(request.url).pathname.replace("/api/v1", "")}`, body });
    return body;
  };
  server.use(
    http.put(at("/providers/:name"), async ({ request, params }) => {
      await record(request);
      return HttpResponse.json(aProvider({ name: String(params.name) }));
    }),
    http.post(at("/providers/:name/test"), async ({ request }) => {
      await record(request);
      return HttpResponse.json(test);
    }),
    http.delete(at("/providers/:name"), async ({ request }) => {
      await record(request);
      return new HttpResponse(null, { status: 204 });
    }),
    http.put(at("/presets/:name"), async ({ request, params }) => {
      const body = (await record(request)) as object;
      return HttpResponse.json(aPreset({ ...body, name: String(params.name) }));
    }),
    http.delete(at("/presets/:name"), async ({ request }) => {
      await record(request);
      return new HttpResponse(null, { status: 204 });
    }),
    http.patch(at("/tenant"), async ({ request }) => {
      const body = (await record(request)) as object;
      return HttpResponse.json(aTenant(body));
    }),
  );
  return writes;
}

test("a provider is chosen, connected and tested, and its model answers new questions", async () => {
  const writes = recordWrites();
  const { user, container } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Add a model" }));
  await user.click(await screen.findByRole("button", { name: "OpenAI" }));
  const key = await screen.findByLabelText("Key");
  expect(key).toHaveAttribute("type", "password");
  expect(screen.queryByLabelText("Address")).toBeNull();
  await user.type(key, KEY);
  await user.click(screen.getByRole("button", { name: "Continue" }));
  const model = await screen.findByRole("radio", { name: /gpt-5-mini/ });
  expect(screen.getByText(/\$0.25 in, \$2.00 out per million tokens/)).toBeVisible();
  expect(screen.queryByRole("button", { name: "Use for new questions" })).toBeNull();
  await user.click(model);
  await user.click(screen.getByRole("button", { name: "Test the model" }));
  expect(await screen.findByText("The model answers")).toBeVisible();
  expect(screen.getByText(/4 s, 1,234 tokens, \$0.02/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Use for new questions" }));
  await waitFor(() => expect(writes.map(({ path }) => path)).toContain("PATCH /tenant"));
  expect(writes).toMatchObject([
    { path: "PUT /providers/openai", body: { provider: "openai", api_base: "", key: KEY } },
    { path: "POST /providers/openai/test", body: { model: "gpt-5-mini" } },
    { path: "PUT /presets/gpt-5-mini", body: { engines: { all: { engine: "litellm", model: "openai/gpt-5-mini" } } } },
    { path: "PATCH /tenant", body: { default_preset: "gpt-5-mini" } },
  ]);
  expect(await screen.findByText("openai/gpt-5-mini answers new questions now.")).toBeVisible();
  expect(container.innerHTML).not.toContain(KEY);
  expect(JSON.stringify({ ...sessionStorage })).not.toContain(KEY);
});

test("a model that does not answer says why and what to do, and cannot be used", async () => {
  const detail = "authentication_failed: Incorrect API key provided";
  const failed = { name: "plain answer", outcome: "fails" as const, detail, cause: "authentication_failed" };
  recordWrites(aProviderTest({ capabilities: [failed] }));
  server.use(http.get(at("/providers"), () => HttpResponse.json([aProvider()])));
  const { user } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Models and test" }));
  await user.click(await screen.findByRole("radio", { name: /gpt-5-mini/ }));
  await user.click(screen.getByRole("button", { name: "Test the model" }));
  expect(await screen.findByText("The model does not answer")).toBeVisible();
  expect(screen.getByRole("alert")).toHaveTextContent(/Incorrect API key.*Create a new one on the provider’s page/);
});

test("an address that is not accepted shows the command of the operator, and the form keeps what was typed", async () => {
  server.use(
    http.put(at("/providers/:name"), () =>
      problem(422, "Unprocessable Content", {
        field: "api_base",
        remedy: "Run `offing engine accept http://10.0.0.5:8000/v1` once where the workers run.",
      }),
    ),
  );
  const { user } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Add a model" }));
  await user.click(await screen.findByRole("button", { name: "vLLM" }));
  await user.type(await screen.findByLabelText("Address"), "http://10.0.0.5:8000/v1");
  const scrollIntoView = vi.spyOn(Element.prototype, "scrollIntoView");
  await user.click(screen.getByRole("button", { name: "Continue" }));
  expect(await screen.findByText("offing engine accept http://10.0.0.5:8000/v1")).toBeVisible();
  expect(screen.getByText(".venv/bin/offing")).toBeVisible();
  expect(scrollIntoView.mock.contexts).toEqual([screen.getByRole("button", { name: "Continue" }).parentElement]);
  expect(screen.getByLabelText("Address")).toHaveValue("http://10.0.0.5:8000/v1");
});

test("a second server with the name of a stored provider says that it replaces it", async () => {
  server.use(http.get(at("/providers"), () => HttpResponse.json([aProvider({ name: "hosted_vllm" })])));
  const { user } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Add a model" }));
  await user.click(await screen.findByRole("button", { name: "vLLM" }));
  const name = await screen.findByLabelText("Name");
  expect(name).toHaveAccessibleDescription(/Its address and key are replaced/);
  await user.type(name, "-2");
  expect(name).toHaveAccessibleDescription("Models are named after it: hosted_vllm-2/MODEL.");
});

test("a server on the machine is used without a key, and one that is not accepted says what to do", async () => {
  const writes = recordWrites();
  const engine = { note: "", texts: {}, model_details: [] };
  server.use(
    http.get(at("/engines"), () =>
      HttpResponse.json([
        { ...engine, name: "litellm:ollama_chat", available: true, models: ["ollama_chat/qwen3:8b"], offered_at: "" },
        { ...engine, name: "litellm:hosted_vllm", available: false, models: [], offered_at: "http://127.0.0.1:8000" },
      ]),
    ),
    http.get(at("/providers/:name/models"), () =>
      HttpResponse.json({ items: [aModel({ name: "qwen3:8b" })], total: 1, source: "server", problem: "" }),
    ),
  );
  const { user } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Add a model" }));
  expect(await screen.findByText("offing engine accept http://127.0.0.1:8000")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Use Ollama" }));
  expect(await screen.findByRole("radio", { name: /qwen3:8b/ })).toBeVisible();
  expect(writes).toMatchObject([{ path: "PUT /providers/ollama_chat", body: { api_base: "", key: "" } }]);
});

test("a model that no list has can be named, and a server that lists none says why", async () => {
  recordWrites(aProviderTest({ model: "openai/new-model" }));
  server.use(
    http.get(at("/providers"), () => HttpResponse.json([aProvider()])),
    http.get(at("/providers/:name/models"), () =>
      HttpResponse.json({ items: [], total: 0, source: "server", problem: "http://x/models rejected the key." }),
    ),
  );
  const { user } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Models and test" }));
  expect(await screen.findByText("http://x/models rejected the key.")).toBeVisible();
  await user.type(screen.getByRole("searchbox", { name: /Search models/ }), "new-model");
  await user.click(await screen.findByRole("radio", { name: /new-model/ }));
  await user.click(screen.getByRole("button", { name: "Test the model" }));
  expect(await screen.findByText(/openai\/new-model/)).toBeVisible();
});

test("removing a provider names the presets that use it", async () => {
  const writes = recordWrites();
  server.use(
    http.get(at("/providers"), () => HttpResponse.json([aProvider()])),
    http.get(at("/presets"), () => HttpResponse.json([aPreset(), aPreset({ name: "other", engines: {} })])),
  );
  const { user } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Remove" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Remove openai?" }));
  expect(await dialog.findByText(/Presets that use it: gpt-5-mini\./)).toBeVisible();
  await user.click(dialog.getByRole("button", { name: "Remove" }));
  await waitFor(() => expect(writes.map(({ path }) => path)).toEqual(["DELETE /providers/openai"]));
});

test("a preset names a model for each role, and an edit keeps what the form does not show", async () => {
  const writes = recordWrites();
  const stored = aPreset({ budget: { max_tokens: 900, max_turns: 4 } });
  const fallback = { ...stored.engines.all, model: "groq/x" } as (typeof stored.engines)[string];
  stored.engines.all = { ...stored.engines.all, fallbacks: [fallback] } as (typeof stored.engines)[string];
  server.use(http.get(at("/presets"), () => HttpResponse.json([stored])));
  const { user } = renderPage("/settings/models");
  await user.click(await screen.findByRole("button", { name: "Edit" }));
  const form = within(await screen.findByRole("form", { name: "Edit the preset gpt-5-mini" }));
  await user.type(await form.findByRole("combobox", { name: "planner" }), "openai/gpt-5.2");
  await user.keyboard("{Escape}");
  const turns = form.getByLabelText("Maximum turns");
  await user.clear(turns);
  await user.type(turns, "none");
  await user.click(form.getByRole("button", { name: "Store the preset" }));
  expect(await form.findByText(/Enter limits as numbers/)).toBeVisible();
  await user.clear(turns);
  await user.type(turns, "6");
  await user.click(form.getByRole("button", { name: "Store the preset" }));
  await waitFor(() => expect(writes).toHaveLength(1));
  expect(writes[0]).toMatchObject({
    path: "PUT /presets/gpt-5-mini",
    body: {
      engines: { all: { fallbacks: [{ model: "groq/x" }] }, planner: { engine: "litellm", model: "openai/gpt-5.2" } },
      budget: { max_turns: 6, max_tokens: 900, max_cost_usd: null },
    },
  });
});

test("a deleted preset can be restored, also as the default", async () => {
  const writes = recordWrites();
  server.use(
    http.get(at("/presets"), () => HttpResponse.json([aPreset()])),
    http.get(at("/tenant"), () => HttpResponse.json(aTenant({ default_preset: "gpt-5-mini" }))),
  );
  const { user } = renderPage("/settings/models");
  expect(await screen.findByText("answers new questions")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Delete" }));
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  await waitFor(() =>
    expect(writes.map(({ path }) => path)).toEqual([
      "DELETE /presets/gpt-5-mini",
      "PUT /presets/gpt-5-mini",
      "PATCH /tenant",
    ]),
  );
});

test("a default preset that is gone is reported", async () => {
  server.use(http.get(at("/tenant"), () => HttpResponse.json(aTenant({ default_preset: "gone" }))));
  renderPage("/settings/models");
  expect(await screen.findByText("This preset is not available any more. Choose another one.")).toBeVisible();
  expect(screen.getByRole("combobox", { name: "Who answers" })).toHaveValue("gone");
});
