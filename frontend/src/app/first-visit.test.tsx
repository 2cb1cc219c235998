import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { afterEach, expect, test } from "vitest";
import { aPreset, aProvider, aProviderTest, aRun, aSource, aTenant } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

afterEach(() => localStorage.clear());

const TITLE = "Two ways to begin";

test("a person without a run and a model is offered two ways, and can skip them for good", async () => {
  const first = renderPage("/");
  expect(await screen.findByRole("heading", { name: TITLE })).toBeVisible();
  expect(screen.getByText(/not a language model: it quotes and does not write/)).toBeVisible();
  await first.user.click(screen.getByRole("button", { name: "Skip" }));
  expect(screen.queryByRole("heading", { name: TITLE })).toBeNull();
  first.unmount();
  renderPage("/");
  expect(await screen.findByText("How it works")).toBeVisible();
  expect(screen.queryByRole("heading", { name: TITLE })).toBeNull();
});

test.each([
  ["a run", () => http.get(at("/runs"), () => HttpResponse.json({ items: [aRun()], next: null }))],
  ["a default preset", () => http.get(at("/tenant"), () => HttpResponse.json(aTenant({ default_preset: "mine" })))],
  [
    "a model of the installation",
    () => http.get(at("/tenant"), () => HttpResponse.json(aTenant({ default_engine: "litellm:openai/a" }))),
  ],
])("a person with %s is not offered them", async (_what, handler) => {
  server.use(handler());
  renderPage("/");
  await waitFor(() => expect(screen.getByRole("combobox", { name: "Who answers" })).toBeEnabled());
  await screen.findAllByText(/How it works|How does undici/);
  expect(screen.queryByRole("heading", { name: TITLE })).toBeNull();
});

test("without a model, demo documents and a question are put into the form", async () => {
  let uploads = 0;
  server.use(
    http.post(at("/library"), () => {
      uploads += 1;
      const source = aSource({ collection: "lighthouses", name: "smeaton.md" });
      return HttpResponse.json({ files: [{ name: "smeaton.md", outcome: "added", source, problem: "" }] });
    }),
  );
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("button", { name: "Try without a model" }));
  await user.click(await screen.findByRole("button", { name: "Use the demo documents" }));
  await waitFor(() =>
    expect(screen.getByRole("textbox", { name: "Question" })).toHaveValue(
      "Why did the third tower on the Eddystone rocks outlast the first two?",
    ),
  );
  expect(uploads).toBeGreaterThan(0);
  expect(await screen.findByText(/The documents are ready/)).toBeVisible();
});

test("a model is set up in place, and the form names what answers", async () => {
  let tenant = aTenant();
  server.use(
    http.get(at("/tenant"), () => HttpResponse.json(tenant)),
    http.put(at("/providers/:name"), () => HttpResponse.json(aProvider())),
    http.post(at("/providers/:name/test"), () => HttpResponse.json(aProviderTest())),
    http.put(at("/presets/:name"), () => HttpResponse.json(aPreset())),
    http.patch(at("/tenant"), () => {
      tenant = aTenant({ default_preset: "gpt-5-mini" });
      return HttpResponse.json(tenant);
    }),
  );
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("button", { name: "Set up a model" }));
  await user.click(await screen.findByRole("button", { name: "OpenAI" }));
  await user.type(await screen.findByLabelText("Key"), "sk-a-key-of-a-person");
  await user.click(screen.getByRole("button", { name: "Continue" }));
  await user.click(await screen.findByRole("radio", { name: /gpt-5-mini/ }));
  await user.click(screen.getByRole("button", { name: "Test the model" }));
  await user.click(await screen.findByRole("button", { name: "Use for new questions" }));
  expect(await screen.findByRole("heading", { name: "openai/gpt-5-mini answers your questions" })).toBeVisible();
  const who = screen.getByRole("combobox", { name: "Who answers" });
  expect(within(who).getByRole("option", { selected: true })).toHaveTextContent("gpt-5-mini");
  await user.click(screen.getByRole("button", { name: "Close" }));
  expect(screen.queryByText("Next, add documents", { exact: false })).toBeNull();
});

test("another preset can be selected for one question, with its turns", async () => {
  const bodies: Record<string, unknown>[] = [];
  server.use(
    http.get(at("/tenant"), () => HttpResponse.json(aTenant({ default_preset: "gpt-5-mini" }))),
    http.get(at("/presets"), () =>
      HttpResponse.json([aPreset(), aPreset({ name: "thorough", budget: { max_turns: 40, depth: "deep" } })]),
    ),
    http.post(at("/runs"), async ({ request }) => {
      bodies.push((await request.json()) as Record<string, unknown>);
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "Why is the sea salt?");
  const who = screen.getByRole("combobox", { name: "Who answers" });
  await within(who).findByRole("option", { name: /thorough/ });
  await user.selectOptions(who, "thorough");
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(bodies).toHaveLength(1));
  expect(bodies[0]).toMatchObject({ preset: "thorough", engines: {}, budget: { max_turns: 40, depth: "deep" } });
});
