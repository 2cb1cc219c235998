import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../api/client";
import { deleteRuns } from "../api/run-changes";
import { type Run, runName } from "../api/runs";
import { threadQuery } from "../api/threads";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Checkbox } from "../ui/field";
import { Failure } from "../ui/loaded";
import { ProblemNote } from "../ui/problem-note";
import { useToast } from "../ui/toast";
import { forgetRuns } from "./run-cache";
import styles from "./runs.module.css";
import { describeProblems } from "./use-organize";

interface DeleteDialogProps {
  runs: readonly Run[];
  onClose(): void;
  /** Called with the ids of all runs that were deleted. */
  onDeleted(runIds: readonly string[]): void;
}

/** Says what a deletion deletes, and asks for confirmation. The server's reasons against it are shown. */
export function DeleteDialog({ runs, onClose, onDeleted }: DeleteDialogProps) {
  const [withLater, setWithLater] = useState(false);
  const client = useQueryClient();
  const toast = useToast();
  const [first] = runs;
  const isOne = runs.length === 1 && first !== undefined;
  const thread = useQuery({ ...threadQuery(first?.thread_id ?? ""), enabled: isOne });
  const laterCount = isOne && thread.data ? thread.data.runs.filter((run) => isLater(run, first)).length : 0;
  const remove = useMutation({
    mutationFn: async () => summarizeDeletions(await deleteRuns(runs, withLater)),
    onSuccess: ({ deleted, keptForks, problems }) => {
      if (deleted.length > 0) {
        forgetRuns(client, deleted);
        // An earlier run of its thread now stands for the thread.
        if (runs.some((run) => run.thread_runs > 1)) client.invalidateQueries({ queryKey: ["run-list"] });
        toast({ text: describeDeletion(deleted.length, keptForks) });
        onDeleted(deleted);
      }
      if (problems.length === 0) onClose();
    },
  });
  const problem = remove.data ? describeProblems(remove.data.problems, runs.length) : remove.error;
  return (
    <Dialog open onClose={onClose} title={plural(runs.length, { one: "Delete this run?", other: "Delete # runs?" })}>
      {isOne && (
        <p dir="auto" className={styles.deletedName}>
          {runName(first)}
        </p>
      )}
      <p>{describeLoss(runs.length)}</p>
      <p>
        {plural(runs.length, {
          one: "Links that share its report stop working.",
          other: "Links that share their reports stop working.",
        })}
      </p>
      <p className="quiet">
        <Trans>
          Documents of the library stay, also those that a run has fetched. Forks stay with what they copied.
        </Trans>
      </p>
      {(laterCount > 0 || !isOne) && (
        <Checkbox
          label={
            isOne
              ? plural(laterCount, {
                  one: "Also delete the later run of its thread",
                  other: "Also delete the # later runs of its thread",
                })
              : t`Also delete the later runs of their threads`
          }
          description={t`Later runs of a thread began with the state of the earlier ones, so these cannot be deleted alone.`}
          checked={withLater}
          onChange={setWithLater}
        />
      )}
      {isOne && <Failure query={thread} />}
      <ProblemNote error={problem} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          {remove.isPending ? t`Deleting…` : t`Delete permanently`}
        </Button>
      </div>
    </Dialog>
  );
}

function describeLoss(count: number): string {
  return plural(count, {
    one: "This deletes its steps, prompts and responses, its report with all ratings, its files, and the runs that it started. It cannot be undone.",
    other:
      "This deletes their steps, prompts and responses, their reports with all ratings, their files, and the runs that they started. It cannot be undone.",
  });
}

function isLater(run: Run, first: Run): boolean {
  return run.id !== first.id && run.created_at > first.created_at;
}

interface DeletionSummary {
  deleted: string[];
  keptForks: number;
  problems: Schemas["Problem"][];
}

function summarizeDeletions(results: readonly Schemas["RunDeletionResultOut"][]): DeletionSummary {
  const summary: DeletionSummary = { deleted: [], keptForks: 0, problems: [] };
  for (const { run_id, deletion, problem } of results) {
    if (deletion) {
      summary.deleted.push(...deletion.run_ids);
      summary.keptForks += deletion.kept_fork_ids.length;
    } else if (problem?.status === 404) {
      // Someone else has deleted it, so it is deleted.
      summary.deleted.push(run_id);
    } else if (problem) summary.problems.push(problem);
  }
  return summary;
}

function describeDeletion(count: number, keptForks: number): string {
  const done = plural(count, { one: "The run is deleted.", other: "# runs are deleted." });
  const forks = plural(keptForks, { one: "# fork stays.", other: "# forks stay." });
  return keptForks > 0 ? `${done} ${forks}` : done;
}
