import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { parseFiles } from "@/shared/api/files";
import { aRun, aStep, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const SHA = "ab".repeat(32);
const PLOT = { name: "plot.png", sha256: SHA, bytes: 18_204, kind: "image/png" };
const TABLE = { name: "table.txt", sha256: "cd".repeat(32), bytes: 9, kind: "text/plain" };
const DONE = { status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z" } as const;
const ADDRESS = `/api/v1/runs/${RUN_ID}/files/${SHA}`;

function asRunFile({ bytes, kind, ...file }: typeof PLOT, isImage: boolean) {
  return { ...file, size_bytes: bytes, media_type: kind, is_image: isImage };
}

function serveRun(marks: string) {
  const step = aStep(1, { kind: "tool_result", label: "compute", title: "plt.plot(x)" });
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ ...DONE, last_seq: 1, step_marks: marks }))),
    http.get(at("/runs/:id/steps"), () => HttpResponse.json({ items: [step], next: null })),
    http.get(at("/runs/:id/steps/:seq"), () =>
      HttpResponse.json({ ...step, payload: { tool: "run_python", content: { files: [PLOT, TABLE] } } }),
    ),
    http.get(at("/runs/:id/files"), () =>
      HttpResponse.json({
        items: [asRunFile(PLOT, true), asRunFile(TABLE, false)],
      }),
    ),
  );
}

test("a step shows the images that its code wrote, and every file can be downloaded", async () => {
  serveRun("s");
  renderPage(`/runs/${RUN_ID}?tab=timeline`);
  await userEvent.click(await screen.findByText("plt.plot(x)"));
  const files = within(await screen.findByRole("list", { name: "Files" }));
  expect(files.getByRole("img", { name: "plot.png" })).toHaveAttribute("src", ADDRESS);
  expect(files.getAllByRole("img")).toHaveLength(1);
  expect(files.getByRole("link", { name: "plot.png" })).toHaveAttribute("href", ADDRESS);
  expect(files.getByRole("link", { name: "table.txt" })).toHaveAttribute("download", "table.txt");
});

test("a report shows the images of its run below the cited text", async () => {
  serveRun("w");
  renderPage(`/runs/${RUN_ID}`);
  const images = within(await screen.findByRole("region", { name: "Images" }));
  expect(images.getByRole("img", { name: "plot.png" })).toHaveAttribute("src", ADDRESS);
  expect(images.queryByText("table.txt")).toBeNull();
});

test("malformed files of a stored result are skipped", () => {
  expect(parseFiles({ content: { files: [PLOT] } })).toEqual([asRunFile(PLOT, true)]);
  const odd = [{ ...PLOT, sha256: "../../x" }, { name: "x" }, null, 3, { ...PLOT, bytes: "9" }];
  expect(parseFiles({ content: { files: odd } })).toEqual([]);
  for (const payload of [null, {}, { content: 3 }, { content: { files: "x" } }])
    expect(parseFiles(payload)).toEqual([]);
});
