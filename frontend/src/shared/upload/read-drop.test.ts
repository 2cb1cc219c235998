import { expect, test } from "vitest";
import { aSource } from "@/testing/builders";
import { batches, readField } from "./read-drop";
import { sourcesOf } from "./use-upload";

const file = (name: string, size: number, path = "") => {
  const made = new File([new Uint8Array(size)], name);
  Object.defineProperty(made, "webkitRelativePath", { value: path });
  return made;
};

test("files are sent in groups that are few and small enough", () => {
  const files = Array.from({ length: 5 }, (_, at) => file(`${at}.md`, 10));
  expect(batches(files, 2, 1_000).map((group) => group.length)).toEqual([2, 2, 1]);
  expect(batches(files, 10, 25).map((group) => group.length)).toEqual([2, 2, 1]);
  expect(batches([file("big.pdf", 99)], 10, 25)).toHaveLength(1);
  expect(batches([])).toEqual([]);
});

test("of a folder only what can be read is taken, and its name is kept", () => {
  const list = [file("a.md", 1, "notes/a.md"), file("b.png", 1, "notes/b.png"), file(".c.md", 1, "notes/.c.md")];
  const picked = readField(list as unknown as FileList);
  expect(picked.folder).toBe("notes");
  expect(picked.files.map((one) => one.name)).toEqual(["a.md"]);
});

test("single files are sent as they are, so that the server can say what is wrong with them", () => {
  expect(readField([file("b.png", 1)] as unknown as FileList).files).toHaveLength(1);
});

test("refused files are no sources, and a file sent twice is one", () => {
  const source = aSource();
  const results = [
    { name: "a", outcome: "added" as const, source, problem: "" },
    { name: "a", outcome: "unchanged" as const, source, problem: "" },
    { name: "x", outcome: "refused" as const, source: null, problem: "no" },
  ];
  expect(sourcesOf(results)).toEqual([source.id]);
});
