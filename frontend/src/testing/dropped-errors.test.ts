import { expect, test } from "vitest";
// @ts-expect-error: a script of the checks, without types
import { droppedErrors } from "../../scripts/check-errors.mjs";

const rules = (code: string): string[] => droppedErrors(code).map(({ rule }: { rule: string }) => rule);

test.each([
  ["function A() { const { data } = useQuery(q); return data; }", "held"],
  ["function A() { const runs = useQuery(q).data; return runs; }", "held"],
  ["function A() { const all = useQueries({ queries }); return all.map((one) => one.data); }", "looked"],
  ["function A() { const runs = useQuery(q); return runs.isSuccess && <b>{runs.data.length}</b>; }", "looked"],
  ["function A() { const ask = useMutation({ mutationFn }); return <b onClick={() => ask.mutate()} />; }", "looked"],
  ["function A() { const runs = useQuery(q); show(runs); return runs.data ?? []; }", "otherwise"],
  ["function A() { const runs = useQuery(q); show(runs); return runs.data?.items.length || 0; }", "otherwise"],
  ["fetchSteps().catch(() => undefined);", "caught"],
  ["fetchSteps().catch(() => {});", "caught"],
  ["fetchSteps().catch(() => []);", "caught"],
  ["try { read(); } catch {}", "caught"],
  ["void upload.send(files);", "voided"],
])("dropped: %s", (code, rule) => {
  expect(rules(code)).toEqual([rule]);
});

test.each([
  "function A() { const runs = useQuery(q); return <Loaded query={runs} what='runs'>{show}</Loaded>; }",
  "function A() { const runs = useQuery(q); return <><ProblemNote error={runs.error} />{runs.data}</>; }",
  "function A() { const ask = useMutation({ mutationFn }); return <ProblemNote error={ask.error} />; }",
  "function useIt() { return useQuery(q); }",
  "function A() { const a = useQuery(q); const b = useQuery(q); return <Loaded query={together({ a, b })}>{s}</Loaded>; }",
  "fetchSteps().catch((error) => setError(error));",
  "try { store(); } catch { /* Without storage the draft lives as long as the page. */ }",
  "void client.invalidateQueries({ queryKey });",
])("kept: %s", (code) => {
  expect(rules(code)).toEqual([]);
});
