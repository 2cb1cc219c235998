/** Uploads that outlive the view they were started in, and what is said of those that did not. */

import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { makeQueryClient } from "@/app/providers";
import { sessionQuery } from "@/shared/api/session";
import { forgetUploads } from "@/shared/upload/upload";
import { aRun, aSource } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const idOf = (nth: number) => `00000000-0000-7000-8000-${String(nth).padStart(12, "0")}`;

/** The files of a folder, as a file field hands them over. */
function folderOf(count: number, folder = "papers"): File[] {
  return Array.from({ length: count }, (_, nth) =>
    Object.defineProperty(new File(["a"], `${nth}.md`), "webkitRelativePath", { value: `${folder}/${nth}.md` }),
  );
}

/** What became of each file of a folder of forty, counted round, or of single ones. */
function added(collection: string, from: number, count: number) {
  return Array.from({ length: count }, (_, nth) => ({
    name: `${from + nth}.md`,
    outcome: "added",
    source: aSource({ id: idOf(collection === "" ? 1_000 : (from + nth) % 40), collection }),
    problem: "",
  }));
}

/** A library that keeps uploads waiting until it is opened, all but the first; `asked` counts their files. */
function slowLibrary(waits: (nth: number) => boolean = (nth) => nth > 1) {
  const asked: number[] = [];
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  server.use(
    http.post(at("/library"), async ({ request }) => {
      const form = await request.formData();
      const count = form.getAll("files").length;
      const from = asked.reduce((sum, one) => sum + one, 0);
      asked.push(count);
      if (waits(asked.length)) await opened;
      return HttpResponse.json({ files: added(String(form.get("collection") ?? ""), from, count) });
    }),
  );
  return { asked, open };
}

function heardScopes(): { sources: string[]; collections: string[] }[] {
  const scopes: { sources: string[]; collections: string[] }[] = [];
  server.use(
    http.post(at("/runs"), async ({ request }) => {
      scopes.push(((await request.json()) as { scope: { sources: string[]; collections: string[] } }).scope);
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  return scopes;
}

test("an upload goes on behind an example that is taken and another view, and the run reads all of it", async () => {
  const { asked, open } = slowLibrary();
  const scopes = heardScopes();
  const { user } = renderPage("/");
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(40));
  await screen.findByText("Reading 40 documents: 16 done");
  await user.click(await screen.findByRole("button", { name: /more than one benchmark/ }));
  expect(screen.getByText("Reading 40 documents: 16 done")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect(screen.getByText("Wait until the documents are read.")).toBeVisible();
  await user.click(screen.getByRole("link", { name: "Library" }));
  await screen.findByRole("heading", { name: "Library" });
  open();
  await waitFor(() => expect(asked).toHaveLength(3));
  await user.click(screen.getByRole("link", { name: "Runs" }));
  expect(await screen.findByText("40 documents ready")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(scopes).toHaveLength(1));
  expect(scopes[0]?.sources).toHaveLength(40);
});

test("files that a reload kept from being sent are counted, and adding the folder again settles it", async () => {
  const { asked, open } = slowLibrary();
  const first = renderPage("/");
  await first.user.upload(await screen.findByLabelText("Add a folder"), folderOf(40));
  await screen.findByText("Reading 40 documents: 16 done");
  first.unmount();
  forgetUploads();
  open();
  const second = renderPage("/");
  expect(await screen.findByText(/24 documents were not sent/)).toHaveTextContent(/Add them again/);
  expect(screen.getByText("16 documents ready, 24 not sent")).toBeVisible();
  await second.user.upload(screen.getByLabelText("Add files"), [new File(["b"], "100.md")]);
  expect(await screen.findByText("17 documents ready, 24 not sent")).toBeVisible();
  await second.user.upload(screen.getByLabelText("Add a folder"), folderOf(40));
  expect(await screen.findByText("41 documents ready")).toBeVisible();
  expect(screen.queryByText(/not sent/)).toBeNull();
  expect(asked).toEqual([16, 16, 1, 16, 16, 8]);
});

test("of two uploads side by side, the end of one does not end the other", async () => {
  const { asked, open } = slowLibrary((nth) => nth === 2);
  const { user } = renderPage("/");
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(20));
  await waitFor(() => expect(asked).toHaveLength(2));
  await user.upload(screen.getByLabelText("Add files"), [new File(["b"], "100.md")]);
  await waitFor(() => expect(asked).toEqual([16, 4, 1]));
  expect(await screen.findByText(/Reading 21 documents: 17 done/)).toBeVisible();
  open();
  expect(await screen.findByText("21 documents ready")).toBeVisible();
});

test("a folder in which nothing can be read does not end the upload before it", async () => {
  const { asked, open } = slowLibrary();
  const { user } = renderPage("/");
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(20));
  await waitFor(() => expect(asked).toHaveLength(2));
  const picture = Object.defineProperty(new File(["a"], "a.png"), "webkitRelativePath", { value: "pictures/a.png" });
  await user.upload(screen.getByLabelText("Add a folder"), [picture]);
  expect(screen.getByText("Reading 20 documents: 16 done")).toBeVisible();
  open();
  expect(await screen.findByText("20 documents ready")).toBeVisible();
  await user.upload(screen.getByLabelText("Add a folder"), [picture]);
  expect(await screen.findByText(/Nothing that you added can be read/)).toBeVisible();
});

test("the library still says which files were refused after its view was left", async () => {
  server.use(
    http.post(at("/library"), () =>
      HttpResponse.json({ files: [{ name: "b.md", outcome: "refused", source: null, problem: "It is empty." }] }),
    ),
  );
  const { user } = renderPage("/library");
  await user.upload(await screen.findByLabelText("Add files"), [new File([""], "b.md")]);
  await screen.findByText("It is empty.");
  await user.click(screen.getByRole("link", { name: "Runs" }));
  await screen.findByRole("heading", { name: "What should be found out?" });
  await user.click(screen.getByRole("link", { name: "Library" }));
  expect(await screen.findByText("It is empty.")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Clear" }));
  expect(screen.queryByText("It is empty.")).toBeNull();
});

test("a single document beside more than a scope may name is never left out in silence", async () => {
  const sources = Array.from({ length: 1_001 }, (_, nth) => ({
    name: `${nth}.md`,
    outcome: "added",
    problem: "",
    source: aSource({ id: idOf(nth), collection: nth === 0 ? "" : "papers" }),
  }));
  const scopes = heardScopes();
  server.use(http.post(at("/library"), () => HttpResponse.json({ files: sources })));
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "What do they say?");
  await user.upload(screen.getByLabelText("Add files"), [new File(["a"], "0.md")]);
  expect(await screen.findByText(/0\.md is in none/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect(within(screen.getByRole("form")).getByRole("alert")).toHaveTextContent(/0\.md is in none.*Choose Clear/);
  expect(scopes).toEqual([]);
});

test("more documents than a scope may name are said to be read by their collections, and so they are", async () => {
  const sources = Array.from({ length: 1_001 }, (_, nth) => ({
    name: `${nth}.md`,
    outcome: "added",
    problem: "",
    source: aSource({ id: idOf(nth), collection: nth % 2 === 0 ? "papers" : "notes" }),
  }));
  const scopes = heardScopes();
  server.use(http.post(at("/library"), () => HttpResponse.json({ files: sources })));
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "What do they say?");
  await user.upload(screen.getByLabelText("Add a folder"), folderOf(1));
  expect(
    await screen.findByText(/Reads the collections papers and notes, with everything that they hold/),
  ).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(scopes).toMatchObject([{ collections: ["papers", "notes"], sources: [] }]));
});

test("a draft is its tenant's: another one who signs in in the same tab finds none of it", async () => {
  server.use(
    http.post(at("/library"), () =>
      HttpResponse.json({ files: [{ name: "a.md", outcome: "added", source: aSource(), problem: "" }] }),
    ),
  );
  const shown = async () => {
    const page = renderPage("/");
    const question = await screen.findByRole("textbox", { name: "Question" });
    return { page, question };
  };
  const signedInAs = (tenant: string) =>
    server.use(http.get(at("/session"), () => HttpResponse.json({ tenant, csrf_token: `token-of-${tenant}` })));
  signedInAs("north");
  const { page: first, question } = await shown();
  await first.user.type(question, "Our secret plan?");
  await first.user.upload(screen.getByLabelText("Add files"), [new File(["a"], "a.md")]);
  await screen.findByText(/Reads only the 1 document/);
  first.unmount();
  signedInAs("south");
  const second = await shown();
  expect(second.question).toHaveValue("");
  expect(screen.queryByText(/Reads only/)).toBeNull();
  second.page.unmount();
  signedInAs("north");
  expect((await shown()).question).toHaveValue("Our secret plan?");
});

test("what was fetched for one tenant is not shown to the next", async () => {
  const client = makeQueryClient();
  const signedInAs = (tenant: string) =>
    server.use(http.get(at("/session"), () => HttpResponse.json({ tenant, csrf_token: `token-of-${tenant}` })));
  signedInAs("north");
  await client.fetchQuery(sessionQuery);
  client.setQueryData(["runs", ""], "north's");
  signedInAs("south");
  await client.fetchQuery({ ...sessionQuery, staleTime: 0 });
  expect(client.getQueryData(["runs", ""])).toBeUndefined();
});

test("files of one tenant are not sent on when the page has another's session", async () => {
  const { asked, open } = slowLibrary();
  const client = makeQueryClient();
  const { user } = renderPage("/", client);
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(40));
  await waitFor(() => expect(asked).toHaveLength(2));
  server.use(http.get(at("/session"), () => HttpResponse.json({ tenant: "other", csrf_token: "another" })));
  await client.fetchQuery({ ...sessionQuery, staleTime: 0 });
  open();
  await waitFor(() => expect(screen.queryByText(/Reading/)).toBeNull());
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(asked).toHaveLength(2);
});

test("signing out takes every draft along", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  let ended = false;
  server.use(
    http.delete(at("/session"), () => {
      ended = true;
      return new HttpResponse(null, { status: 204 });
    }),
  );
  sessionStorage.setItem("offing.draft.someone:question", '"theirs"');
  sessionStorage.setItem("another", "stays");
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "Half a quest");
  const drafts = () => Object.keys(sessionStorage).filter((item) => item.startsWith("offing.draft."));
  expect(drafts()).toHaveLength(2);
  await user.click(screen.getByRole("button", { name: "Settings" }));
  await user.click(await screen.findByRole("button", { name: "Sign out" }));
  await waitFor(() => expect(ended).toBe(true));
  await waitFor(() => expect(drafts()).toEqual([]));
  expect(sessionStorage.getItem("another")).toBe("stays");
});
