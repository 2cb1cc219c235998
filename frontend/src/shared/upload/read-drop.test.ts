import { expect, test } from "vitest";
import { aSource } from "@/testing/builders";
import { readDrop, readField, splitIntoChunks } from "./read-drop";
import { listSourceIds } from "./use-upload";

const picked = (name: string, size: number) => ({ name, file: new File([new Uint8Array(size)], name) });
const file = (name: string, size: number, path = "") => {
  const file = new File([new Uint8Array(size)], name);
  Object.defineProperty(file, "webkitRelativePath", { value: path });
  return file;
};

test("files are split into chunks of limited count and size", () => {
  const files = Array.from({ length: 5 }, (_, at) => picked(`${at}.md`, 10));
  expect(splitIntoChunks(files, 2, 1_000).map((group) => group.length)).toEqual([2, 2, 1]);
  expect(splitIntoChunks(files, 10, 25).map((group) => group.length)).toEqual([2, 2, 1]);
  expect(splitIntoChunks([picked("big.pdf", 99)], 10, 25)).toHaveLength(1);
  expect(splitIntoChunks([])).toEqual([]);
});

test("of a folder only readable files are used, with their path in it and the name of the folder", () => {
  const paths = ["notes/a.md", "notes/deep/a.md", "notes/b.png", "notes/.c.md", "notes/.git/d.md"];
  const list = paths.map((path) => file(path.split("/").at(-1) ?? "", 1, path));
  const [picked, ...more] = readField(list as unknown as FileList);
  expect(picked?.folder).toBe("notes");
  expect(picked?.files.map((one) => one.name)).toEqual(["a.md", "deep/a.md"]);
  expect(more).toEqual([]);
});

test("a drop can contain several folders and single files, and each file keeps its folder", async () => {
  const leaf = (name: string) => ({
    name,
    isFile: true,
    isDirectory: false,
    file: (ok: (f: File) => void) => ok(file(name, 1)),
  });
  const folder = (name: string, children: unknown[]) => {
    const batches = [children, []];
    return {
      name,
      isFile: false,
      isDirectory: true,
      createReader: () => ({ readEntries: (ok: (e: unknown) => void) => ok(batches.shift()) }),
    };
  };
  const entries = [
    folder("one", [leaf("a.md"), folder("in", [leaf("a.md")])]),
    folder("two", [leaf("b.md")]),
    leaf("c.md"),
  ];
  const data = { items: entries.map((entry) => ({ webkitGetAsEntry: () => entry })), files: [] };
  const groups = await readDrop(data as unknown as DataTransfer);
  expect(groups.map((one) => [one.folder, one.files.map(({ name }) => name)])).toEqual([
    ["one", ["a.md", "in/a.md"]],
    ["two", ["b.md"]],
    ["", ["c.md"]],
  ]);
});

test("single files are sent unfiltered, so that the server can say why it rejects one", () => {
  expect(readField([file("b.png", 1)] as unknown as FileList)[0]?.files).toHaveLength(1);
});

test("rejected files are not sources, and a file that was sent twice is one source", () => {
  const source = aSource();
  const results = [
    { name: "a", outcome: "added" as const, source, problem: "" },
    { name: "a", outcome: "unchanged" as const, source, problem: "" },
    { name: "x", outcome: "rejected" as const, source: null, problem: "no" },
  ];
  expect(listSourceIds(results)).toEqual([source.id]);
});
