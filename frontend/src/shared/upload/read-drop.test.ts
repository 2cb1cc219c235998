import { expect, test } from "vitest";
import { aSource } from "@/testing/builders";
import { batches, readDrop, readField } from "./read-drop";
import { sourcesOf } from "./use-upload";

const picked = (name: string, size: number) => ({ name, file: new File([new Uint8Array(size)], name) });
const file = (name: string, size: number, path = "") => {
  const made = new File([new Uint8Array(size)], name);
  Object.defineProperty(made, "webkitRelativePath", { value: path });
  return made;
};

test("files are sent in groups that are few and small enough", () => {
  const files = Array.from({ length: 5 }, (_, at) => picked(`${at}.md`, 10));
  expect(batches(files, 2, 1_000).map((group) => group.length)).toEqual([2, 2, 1]);
  expect(batches(files, 10, 25).map((group) => group.length)).toEqual([2, 2, 1]);
  expect(batches([picked("big.pdf", 99)], 10, 25)).toHaveLength(1);
  expect(batches([])).toEqual([]);
});

test("of a folder only what can be read is taken, under its path there, and the folder's name is kept", () => {
  const paths = ["notes/a.md", "notes/deep/a.md", "notes/b.png", "notes/.c.md", "notes/.git/d.md"];
  const list = paths.map((path) => file(path.split("/").at(-1) ?? "", 1, path));
  const [picked, ...more] = readField(list as unknown as FileList);
  expect(picked?.folder).toBe("notes");
  expect(picked?.files.map((one) => one.name)).toEqual(["a.md", "deep/a.md"]);
  expect(more).toEqual([]);
});

test("a drop may hold several folders and single files, and each keeps what it belongs to", async () => {
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
  const found = await readDrop(data as unknown as DataTransfer);
  expect(found.map((one) => [one.folder, one.files.map(({ name }) => name)])).toEqual([
    ["one", ["a.md", "in/a.md"]],
    ["two", ["b.md"]],
    ["", ["c.md"]],
  ]);
});

test("single files are sent as they are, so that the server can say what is wrong with them", () => {
  expect(readField([file("b.png", 1)] as unknown as FileList)[0]?.files).toHaveLength(1);
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
