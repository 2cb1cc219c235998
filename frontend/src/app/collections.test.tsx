import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aSource } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const erased = { sources: 0, snapshots: 0, passages: 0, steps: 0 };

async function openMenu(user: ReturnType<typeof renderPage>["user"], action: string) {
  await user.click(await screen.findByRole("button", { name: "Actions for the collection undici" }));
  await user.click(await screen.findByRole("menuitem", { name: action }));
}

test("a collection is renamed, and the server's reason against it is shown", async () => {
  const bodies: unknown[] = [];
  server.use(
    http.post(at("/library/collections/rename"), async ({ request }) => {
      bodies.push(await request.json());
      if (bodies.length === 1)
        return problem(409, "Conflict", { detail: "Run 7, which has not ended, is limited to it." });
      return HttpResponse.json({ name: "http", count: 41 });
    }),
  );
  const { user } = renderPage("/library");
  await openMenu(user, "Rename…");
  const name = await screen.findByRole("textbox", { name: "Name" });
  await user.clear(name);
  await user.type(name, "http{Enter}");
  expect(await screen.findByText("Run 7, which has not ended, is limited to it.")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Rename" }));
  expect(await screen.findByText("The collection is now called http.")).toBeVisible();
  expect(bodies[1]).toEqual({ name: "undici", new_name: "http" });
});

test("a collection is deleted with its documents kept or erased, part by part", async () => {
  const asked: (string | null)[] = [];
  server.use(
    http.delete(at("/library/collections"), ({ request }) => {
      asked.push(new URL(request.url).searchParams.get("documents"));
      const remaining = asked.length === 1 ? 21 : 0;
      return HttpResponse.json({ kept_count: 0, erased: { ...erased, sources: 20 }, remaining });
    }),
  );
  const { user } = renderPage("/library");
  await openMenu(user, "Delete…");
  const dialog = await screen.findByRole("dialog", { name: "Delete the collection undici?" });
  expect(within(dialog).getByRole("radio", { name: /Keep them as single files/ })).toBeChecked();
  await user.click(within(dialog).getByRole("radio", { name: /Erase them/ }));
  await user.click(within(dialog).getByRole("button", { name: "Delete the collection" }));
  expect(await screen.findByText("40 documents were erased.")).toBeVisible();
  expect(asked).toEqual(["erase", "erase"]);
});

test("documents are moved to another collection, and a message moves them back", async () => {
  const moves: { source_ids: string[]; collection: string }[] = [];
  server.use(
    http.post(at("/library/sources/move"), async ({ request }) => {
      moves.push((await request.json()) as (typeof moves)[number]);
      return HttpResponse.json({ moved: 1 });
    }),
  );
  const { user } = renderPage("/library");
  await user.click(await screen.findByRole("checkbox", { name: "Select “undici: Client”" }));
  await user.click(screen.getByRole("button", { name: "Move to a collection…" }));
  const dialog = await screen.findByRole("dialog", { name: "Move 1 document" });
  await user.type(within(dialog).getByRole("combobox", { name: "Collection" }), "http");
  await user.click(within(dialog).getByRole("button", { name: "Move" }));
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  await waitFor(() => expect(moves.map(({ collection }) => collection)).toEqual(["http", "undici"]));
  expect(moves[0]?.source_ids).toEqual([aSource().id]);
});
