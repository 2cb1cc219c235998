/** Uploads continue when their view is closed, and the next view reports the files that were not sent. */

import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { createQueryClient } from "@/app/providers";
import { sessionQuery } from "@/shared/api/session";
import { cancelUploads } from "@/shared/upload/upload";
import { aRun, aSource } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const idOf = (nth: number) => `00000000-0000-7000-8000-${String(nth).padStart(12, "0")}`;

/** Create the files of a folder as a file input returns them. */
function folderOf(count: number, folder = "papers"): File[] {
  return Array.from({ length: count }, (_, nth) =>
    Object.defineProperty(new File(["a"], `${nth}.md`), "webkitRelativePath", { value: `${folder}/${nth}.md` }),
  );
}

/** Return an outcome for each file of a folder of forty files, or for single files. */
function added(collection: string, from: number, count: number) {
  return Array.from({ length: count }, (_, nth) => ({
    name: `${from + nth}.md`,
    outcome: "added",
    source: aSource({ id: idOf(collection === "" ? 1_000 : (from + nth) % 40), collection }),
    problem: "",
  }));
}

/**
 * Serve a library that holds back all uploads except the first until it is opened. `fileCounts` contains the file count of
 * each request.
 */
function serveSlowLibrary(isHeld: (nth: number) => boolean = (nth) => nth > 1) {
  const fileCounts: number[] = [];
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  server.use(
    http.post(at("/library"), async ({ request }) => {
      const form = await request.formData();
      const count = form.getAll("files").length;
      const from = fileCounts.reduce((sum, one) => sum + one, 0);
      fileCounts.push(count);
      if (isHeld(fileCounts.length)) await opened;
      return HttpResponse.json({ files: added(String(form.get("collection") ?? ""), from, count) });
    }),
  );
  return { fileCounts, open };
}

function recordScopes(): { sources: string[]; collections: string[] }[] {
  const scopes: { sources: string[]; collections: string[] }[] = [];
  server.use(
    http.post(at("/runs"), async ({ request }) => {
      scopes.push(((await request.json()) as { scope: { sources: string[]; collections: string[] } }).scope);
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  return scopes;
}

test("an upload continues behind an example and another view, and the run reads all of it", async () => {
  const { fileCounts, open } = serveSlowLibrary();
  const scopes = recordScopes();
  const { user } = renderPage("/");
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(40));
  await screen.findByText("Processing 40 documents: 16 done");
  await user.click(await screen.findByRole("button", { name: /more than one benchmark/ }));
  expect(screen.getByText("Processing 40 documents: 16 done")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect(screen.getByText("Wait until the documents are processed.")).toBeVisible();
  await user.click(screen.getByRole("link", { name: "Library" }));
  await screen.findByRole("heading", { name: "Library" });
  open();
  await waitFor(() => expect(fileCounts).toHaveLength(3));
  await user.click(screen.getByRole("link", { name: "Ask" }));
  expect(await screen.findByText("40 documents ready")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(scopes).toHaveLength(1));
  expect(scopes[0]?.sources).toHaveLength(40);
});

test("files that were not sent because of a reload are counted until the folder is added again", async () => {
  const { fileCounts, open } = serveSlowLibrary();
  const first = renderPage("/");
  await first.user.upload(await screen.findByLabelText("Add a folder"), folderOf(40));
  await screen.findByText("Processing 40 documents: 16 done");
  first.unmount();
  cancelUploads();
  open();
  const second = renderPage("/");
  expect(await screen.findByText(/24 documents were not sent/)).toHaveTextContent(/Add them again/);
  expect(screen.getByText("16 documents ready, 24 not sent")).toBeVisible();
  await second.user.upload(screen.getByLabelText("Add files"), [new File(["b"], "100.md")]);
  expect(await screen.findByText("17 documents ready, 24 not sent")).toBeVisible();
  await second.user.upload(screen.getByLabelText("Add a folder"), folderOf(40));
  expect(await screen.findByText("41 documents ready")).toBeVisible();
  expect(screen.queryByText(/not sent/)).toBeNull();
  expect(fileCounts).toEqual([16, 16, 1, 16, 16, 8]);
});

test("the end of one upload does not end a parallel one", async () => {
  const { fileCounts, open } = serveSlowLibrary((nth) => nth === 2);
  const { user } = renderPage("/");
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(20));
  await waitFor(() => expect(fileCounts).toHaveLength(2));
  await user.upload(screen.getByLabelText("Add files"), [new File(["b"], "100.md")]);
  await waitFor(() => expect(fileCounts).toEqual([16, 4, 1]));
  expect(await screen.findByText(/Processing 21 documents: 17 done/)).toBeVisible();
  open();
  expect(await screen.findByText("21 documents ready")).toBeVisible();
});

test("a folder without readable files does not end the upload before it", async () => {
  const { fileCounts, open } = serveSlowLibrary();
  const { user } = renderPage("/");
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(20));
  await waitFor(() => expect(fileCounts).toHaveLength(2));
  const picture = Object.defineProperty(new File(["a"], "a.png"), "webkitRelativePath", { value: "pictures/a.png" });
  await user.upload(screen.getByLabelText("Add a folder"), [picture]);
  expect(screen.getByText("Processing 20 documents: 16 done")).toBeVisible();
  open();
  expect(await screen.findByText("20 documents ready")).toBeVisible();
  await user.upload(screen.getByLabelText("Add a folder"), [picture]);
  expect(await screen.findByText(/None of the added files can be read/)).toBeVisible();
});

test("the library still shows the rejected files after its view was closed", async () => {
  server.use(
    http.post(at("/library"), () =>
      HttpResponse.json({ files: [{ name: "b.md", outcome: "rejected", source: null, problem: "It is empty." }] }),
    ),
  );
  const { user } = renderPage("/library");
  await user.upload(await screen.findByLabelText("Add files"), [new File([""], "b.md")]);
  await screen.findByText("It is empty.");
  await user.click(screen.getByRole("link", { name: "Ask" }));
  await screen.findByRole("heading", { name: "What do you want to find out?" });
  await user.click(screen.getByRole("link", { name: "Library" }));
  expect(await screen.findByText("It is empty.")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Clear" }));
  expect(screen.queryByText("It is empty.")).toBeNull();
});

test("a single document in addition to more documents than a scope may name is not dropped silently", async () => {
  const sources = Array.from({ length: 1_001 }, (_, nth) => ({
    name: `${nth}.md`,
    outcome: "added",
    problem: "",
    source: aSource({ id: idOf(nth), collection: nth === 0 ? "" : "papers" }),
  }));
  const scopes = recordScopes();
  server.use(http.post(at("/library"), () => HttpResponse.json({ files: sources })));
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "What do they say?");
  await user.upload(screen.getByLabelText("Add files"), [new File(["a"], "0.md")]);
  expect(await screen.findByText(/0\.md is in no folder/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect(within(screen.getByRole("form")).getByRole("alert")).toHaveTextContent(/0\.md is in no folder.*Choose Clear/);
  expect(scopes).toEqual([]);
});

test("if more documents are attached than a scope may name, the form says that whole collections are read, and the request names them", async () => {
  const sources = Array.from({ length: 1_001 }, (_, nth) => ({
    name: `${nth}.md`,
    outcome: "added",
    problem: "",
    source: aSource({ id: idOf(nth), collection: nth % 2 === 0 ? "papers" : "notes" }),
  }));
  const scopes = recordScopes();
  server.use(http.post(at("/library"), () => HttpResponse.json({ files: sources })));
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "What do they say?");
  await user.upload(screen.getByLabelText("Add a folder"), folderOf(1));
  expect(await screen.findByText(/Reads the collections papers and notes, with all of their documents/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(scopes).toMatchObject([{ collections: ["papers", "notes"], sources: [] }]));
});

test("a draft belongs to its tenant and is not shown to another one in the same tab", async () => {
  server.use(
    http.post(at("/library"), () =>
      HttpResponse.json({ files: [{ name: "a.md", outcome: "added", source: aSource(), problem: "" }] }),
    ),
  );
  const openComposer = async () => {
    const page = renderPage("/");
    const question = await screen.findByRole("textbox", { name: "Question" });
    return { page, question };
  };
  const signedInAs = (tenant: string) =>
    server.use(http.get(at("/session"), () => HttpResponse.json({ tenant, csrf_token: `token-of-${tenant}` })));
  signedInAs("north");
  const { page: first, question } = await openComposer();
  await first.user.type(question, "Our secret plan?");
  await first.user.upload(screen.getByLabelText("Add files"), [new File(["a"], "a.md")]);
  await screen.findByText(/Reads only the 1 document/);
  first.unmount();
  signedInAs("south");
  const second = await openComposer();
  expect(second.question).toHaveValue("");
  expect(screen.queryByText(/Reads only/)).toBeNull();
  second.page.unmount();
  signedInAs("north");
  expect((await openComposer()).question).toHaveValue("Our secret plan?");
});

test("data loaded for one tenant is not shown to the next", async () => {
  const client = createQueryClient();
  const signedInAs = (tenant: string) =>
    server.use(http.get(at("/session"), () => HttpResponse.json({ tenant, csrf_token: `token-of-${tenant}` })));
  signedInAs("north");
  await client.fetchQuery(sessionQuery);
  client.setQueryData(["runs", ""], "north's");
  signedInAs("south");
  await client.fetchQuery({ ...sessionQuery, staleTime: 0 });
  expect(client.getQueryData(["runs", ""])).toBeUndefined();
});

test("files of one tenant are not sent in the session of another", async () => {
  const { fileCounts, open } = serveSlowLibrary();
  const client = createQueryClient();
  const { user } = renderPage("/", client);
  await user.upload(await screen.findByLabelText("Add a folder"), folderOf(40));
  await waitFor(() => expect(fileCounts).toHaveLength(2));
  server.use(http.get(at("/session"), () => HttpResponse.json({ tenant: "other", csrf_token: "another" })));
  await client.fetchQuery({ ...sessionQuery, staleTime: 0 });
  open();
  await waitFor(() => expect(screen.queryByText(/Processing/)).toBeNull());
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(fileCounts).toHaveLength(2);
});

test("signing out deletes every draft", async () => {
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
  await user.click(screen.getByRole("button", { name: "Account" }));
  await user.click(await screen.findByRole("button", { name: "Sign out" }));
  await waitFor(() => expect(ended).toBe(true));
  await waitFor(() => expect(drafts()).toEqual([]));
  expect(sessionStorage.getItem("another")).toBe("stays");
});
