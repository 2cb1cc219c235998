import { plural, t } from "@lingui/core/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ProblemError } from "../api/client";
import { changeRun, type Run, type RunChange } from "../api/runs";
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

/** Number of runs that are changed at the same time. */
const PARALLEL_CHANGES = 4;

/** Call `change` for each run, a few at a time, and return the errors. */
export async function forEachRun(runs: readonly Run[], change: (run: Run) => Promise<unknown>): Promise<unknown[]> {
  const errors: unknown[] = [];
  for (let at = 0; at < runs.length; at += PARALLEL_CHANGES) {
    const results = await Promise.allSettled(runs.slice(at, at + PARALLEL_CHANGES).map(change));
    for (const result of results) if (result.status === "rejected") errors.push(result.reason);
  }
  return errors;
}

/** Return one error for the failures of an action on several runs. Those that succeeded stay done. */
export function describeFailures(errors: readonly unknown[], runCount: number): unknown {
  const [first] = errors;
  if (runCount === 1 || !(first instanceof ProblemError)) return first;
  const title = t`${errors.length} of ${runCount} runs stay as they were`;
  return new ProblemError(first.status, title, first.detail, first.field, first.remedy);
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
      const errors = await forEachRun(runs, async (run) => storeRun(client, await changeRun(run.id, change(run))));
      if (errors.length > 0) throw describeFailures(errors, runs.length);
    },
    onSuccess: (_, { runs, change, done }) => {
      const undo = () => mutation.mutate({ runs, change: (run) => revertChange(run, change(run)) });
      if (done) toast({ text: done, undo });
    },
    onSettled: (_data, _error, { runs }) => {
      client.invalidateQueries({ queryKey: ["tags"] });
      client.invalidateQueries({ queryKey: ["run-list-start"] });
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
