import { plural, t } from "@lingui/core/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ProblemError, type Schemas } from "../api/client";
import { changeRuns, type RunChange } from "../api/run-changes";
import type { Run } from "../api/runs";
import { useToast } from "../ui/toast";
import { storeRun } from "./run-cache";

/** Return what a run has of the fields that a change changes, so that sending it undoes the change. */
function revertChange(run: Run, change: RunChange): RunChange {
  return {
    ...(change.title != null && { title: run.given_title }),
    ...(change.tags != null && { tags: run.tags }),
    ...(change.pinned != null && { pinned: run.pinned_at != null }),
    ...(change.archived != null && { archived: run.archived_at != null }),
  };
}

type Problem = Schemas["Problem"];

/** Return one error for the runs that an action has not changed. Those that it has changed stay so. */
export function describeProblems(problems: readonly Problem[], runCount: number): ProblemError | null {
  const [first] = problems;
  if (!first) return null;
  const title = runCount === 1 ? first.title : t`${problems.length} of ${runCount} runs stay as they were`;
  return new ProblemError(first.status, title, first.detail, first.field ?? null, first.remedy ?? null);
}

interface OrganizeRequest {
  runs: readonly Run[];
  change(run: Run): RunChange;
  /** What the message says that was done. Without it there is no message. */
  done?: string;
}

/** Titles, tags, pins and the archive: change them for runs, with a message that undoes it. */
export function useOrganize() {
  const client = useQueryClient();
  const toast = useToast();
  const mutation = useMutation({
    mutationFn: async ({ runs, change }: OrganizeRequest) => {
      const results = await changeRuns(runs.map((run) => ({ run_id: run.id, ...change(run) })));
      for (const { run } of results) if (run) storeRun(client, run);
      const problem = describeProblems(
        results.flatMap((result) => result.problem ?? []),
        runs.length,
      );
      if (problem) throw problem;
    },
    onSuccess: (_, { runs, change, done }) => {
      const undo = () => mutation.mutate({ runs, change: (run) => revertChange(run, change(run)) });
      if (done) toast({ text: done, undo });
    },
    onSettled: (_data, _error, { runs, change }) => {
      // Another run of its thread now stands for the thread.
      if (runs.some((run) => run.thread_runs > 1 && change(run).archived != null)) {
        client.invalidateQueries({ queryKey: ["run-list"] });
      }
      client.invalidateQueries({ queryKey: ["tags"] });
      client.invalidateQueries({ queryKey: ["run-list-start"] });
      client.invalidateQueries({ queryKey: ["run-counts"] });
      for (const threadId of new Set(runs.map((run) => run.thread_id))) {
        client.invalidateQueries({ queryKey: ["thread", threadId] });
      }
    },
  });
  const { mutate } = mutation;
  return {
    error: mutation.error,
    isPending: mutation.isPending,
    reset: mutation.reset,
    rename: (run: Run, title: string) =>
      mutate({
        runs: [run],
        change: () => ({ title }),
        done: title ? t`The run is renamed.` : t`The run has no title.`,
      }),
    pin: (runs: readonly Run[], pinned: boolean) => {
      const count = runs.length;
      const done = pinned
        ? plural(count, { one: "The run is pinned.", other: "# runs are pinned." })
        : plural(count, { one: "The run is not pinned any more.", other: "# runs are not pinned any more." });
      mutate({ runs, change: () => ({ pinned }), done });
    },
    archive: (runs: readonly Run[], archived: boolean) => {
      const count = runs.length;
      const done = archived
        ? plural(count, { one: "The run is archived.", other: "# runs are archived." })
        : plural(count, { one: "The run is in the list again.", other: "# runs are in the list again." });
      mutate({ runs, change: () => ({ archived }), done });
    },
    tag: (runs: readonly Run[], added: readonly string[], removed: readonly string[]) =>
      mutate({
        runs,
        change: (run) => ({ tags: [...new Set([...run.tags.filter((tag) => !removed.includes(tag)), ...added])] }),
        done: plural(runs.length, {
          one: "The tags of the run are changed.",
          other: "The tags of # runs are changed.",
        }),
      }),
  };
}

export type Organize = ReturnType<typeof useOrganize>;
