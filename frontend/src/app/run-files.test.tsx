import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { filesOf } from "@/shared/api/files";
import { aRun, aStep, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const SHA = "ab".repeat(32);
const PLOT = { name: "plot.png", sha256: SHA, bytes: 18_204, kind: "image/png" };
const TABLE = { name: "table.txt", sha256: "cd".repeat(32), bytes: 9, kind: "text/plain" };
const DONE = { status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z" } as const;
const ADDRESS = `/api/v1/runs/${RUN_ID}/files/${SHA}`;

function serves(marks: string) {
  const step = aStep(1, { kind: "tool", label: "compute", title: "plt.plot(x)" });
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ ...DONE, last_seq: 1, marks }))),
    http.get(at("/runs/:id/steps"), () => HttpResponse.json({ items: [step], next: null })),
    http.get(at("/runs/:id/steps/:seq"), () =>
      HttpResponse.json({ ...step, payload: { tool: "run_python", content: { files: [PLOT, TABLE] } } }),
    ),
    http.get(at("/runs/:id/files"), () =>
      HttpResponse.json({
        items: [
          { ...PLOT, picture: true },
          { ...TABLE, picture: false },
        ],
      }),
    ),
  );
}

test("a step that drew a picture shows it, and every file can be downloaded", async () => {
  serves("s");
  renderPage(`/runs/${RUN_ID}?tab=timeline`);
  await userEvent.click(await screen.findByText("plt.plot(x)"));
  const files = within(await screen.findByRole("list", { name: "Files" }));
  expect(files.getByRole("img", { name: "plot.png" })).toHaveAttribute("src", ADDRESS);
  expect(files.getAllByRole("img")).toHaveLength(1);
  expect(files.getByRole("link", { name: "plot.png" })).toHaveAttribute("href", ADDRESS);
  expect(files.getByRole("link", { name: "table.txt" })).toHaveAttribute("download", "table.txt");
});

test("a report shows the pictures of its run below what it cites", async () => {
  serves("w");
  renderPage(`/runs/${RUN_ID}`);
  const figures = within(await screen.findByRole("region", { name: "Figures" }));
  expect(figures.getByRole("img", { name: "plot.png" })).toHaveAttribute("src", ADDRESS);
  expect(figures.queryByText("table.txt")).toBeNull();
});

test("what does not look like a file in a stored result is left out", () => {
  expect(filesOf({ content: { files: [PLOT] } })).toEqual([{ ...PLOT, picture: true }]);
  const odd = [{ ...PLOT, sha256: "../../x" }, { name: "x" }, null, 3, { ...PLOT, bytes: "9" }];
  expect(filesOf({ content: { files: odd } })).toEqual([]);
  for (const payload of [null, {}, { content: 3 }, { content: { files: "x" } }]) expect(filesOf(payload)).toEqual([]);
});
