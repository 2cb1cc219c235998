import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
// @ts-expect-error: a script of the checks, without types
import { findDroppedErrors } from "../../scripts/check-errors.mjs";

const rules = (code: string): string[] => findDroppedErrors(code).map(({ rule }: { rule: string }) => rule);

test.each([
  ["function A() { const { data } = useQuery(q); return data; }", "destructured"],
  ["function A() { const runs = useQuery(q).data; return runs; }", "destructured"],
  ["function A() { const all = useQueries({ queries }); return all.map((one) => one.data); }", "unread"],
  ["function A() { const runs = useQuery(q); return runs.isSuccess && <b>{runs.data.length}</b>; }", "unread"],
  ["function A() { const ask = useMutation({ mutationFn }); return <b onClick={() => ask.mutate()} />; }", "unread"],
  ["function A() { const runs = useQuery(q); show(runs); return runs.data ?? []; }", "fallback"],
  ["function A() { const runs = useQuery(q); show(runs); return runs.data?.items.length || 0; }", "fallback"],
  ["fetchSteps().catch(() => undefined);", "caught"],
  ["fetchSteps().catch(() => {});", "caught"],
  ["fetchSteps().catch(() => []);", "caught"],
  ["try { read(); } catch {}", "caught"],
  ["function a() { try { return read(); } catch { return null; } }", "caught"],
  ["function a() { try { return read(); } catch { return; } }", "caught"],
  ["function a() { try { return read(); } catch { return []; } }", "caught"],
  ["function a() { try { return read(); } catch { return { items: [], next: -1 }; } }", "caught"],
  ["function a() { try { return read(); } catch { return NOTHING; } }", "caught"],
  ["function a() { try { return read(); } catch { return 'http://nowhere'; } }", "caught"],
  ["function a() { try { return read(); } catch (error) { return false; } }", "caught"],
  ["for (const one of all) { try { read(one); } catch { continue; } }", "caught"],
  ["fetchSteps().catch(() => { return null; });", "caught"],
  ["fetchSteps().catch(() => NOTHING);", "caught"],
  ["void upload.send(files);", "voided"],
])("reported: %s", (code, rule) => {
  expect(rules(code)).toEqual([rule]);
});

test.each([
  "function A() { const runs = useQuery(q); return <Loaded query={runs} what='runs'>{show}</Loaded>; }",
  "function A() { const runs = useQuery(q); return <><ProblemNote error={runs.error} />{runs.data}</>; }",
  "function A() { const ask = useMutation({ mutationFn }); return <ProblemNote error={ask.error} />; }",
  "function useIt() { return useQuery(q); }",
  "function A() { const a = useQuery(q); const b = useQuery(q); return <Loaded query={combineQueries({ a, b })}>{s}</Loaded>; }",
  "fetchSteps().catch((error) => setError(error));",
  "try { store(); } catch { /* Without storage the draft lives as long as the page. */ }",
  "function a() { try { return read(); } catch { return null; /* Without storage nothing was kept. */ } }",
  "function a() { try { return read(); } catch { throw new ViewLoadError(); } }",
  "function a() { try { return read(); } catch { checkServer(); return null; } }",
  "function a() { try { return read(); } catch (error) { return failedResults(error); } }",
  "void client.invalidateQueries({ queryKey });",
])("not reported: %s", (code) => {
  expect(rules(code)).toEqual([]);
});

test.each(["plain", "with a space", "50% #1 für alle"])("the check runs in a folder with the name “%s”", (name) => {
  const folder = mkdtempSync(join(tmpdir(), "page-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const page = join(folder, name);
  mkdirSync(join(page, "src"), { recursive: true });
  cpSync(resolve("scripts"), join(page, "scripts"), { recursive: true });
  symlinkSync(resolve("node_modules"), join(page, "node_modules"));
  symlinkSync(page, join(folder, "link"));
  writeFileSync(join(page, "src", "a.ts"), "fetchSteps().catch(() => undefined);\n");
  for (const cwd of [page, join(folder, "link")]) {
    const check = spawnSync(process.execPath, [join(cwd, "scripts", "check-errors.mjs")], { cwd, encoding: "utf8" });
    expect(check.stderr).toContain("a.ts:1 This handler drops the error");
    expect(check.status).toBe(1);
  }
});
