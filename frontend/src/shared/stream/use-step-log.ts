import { skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import { fetchSteps, STEP_PAGE } from "../api/runs";
import { changeLog, logKey } from "./apply-events";
import { EMPTY_LOG, missingPages, reaching, type StepLog, withSteps } from "./step-log";

export interface HeldSteps {
  log: StepLog;
  /** Fetches what is not held between these steps, both included. Cheap to call again. */
  need(from: number, to: number): void;
}

/** The run's steps as far as they are held; `last` is the highest number known from the run itself. */
export function useStepLog(run: string, last: number): HeldSteps {
  const client = useQueryClient();
  const { data: held = EMPTY_LOG } = useQuery<StepLog>({
    queryKey: logKey(run),
    queryFn: skipToken,
    staleTime: Number.POSITIVE_INFINITY,
  });
  useEffect(() => changeLog(client, run, (was) => reaching(was, last)), [client, run, last]);

  const need = useCallback(
    (from: number, to: number) => {
      const known = reaching(client.getQueryData<StepLog>(logKey(run)) ?? EMPTY_LOG, last);
      for (const page of missingPages(known, from, to)) {
        client
          .fetchQuery({
            queryKey: ["steps-page", run, page],
            queryFn: ({ signal }) => fetchSteps(run, page * STEP_PAGE, signal),
            gcTime: 0,
          })
          .then((answer) => changeLog(client, run, (now) => withSteps(now, answer.items)))
          // The rows keep their place and say so; the next look at them asks again.
          .catch(() => undefined);
      }
    },
    [client, run, last],
  );
  const log = useMemo(() => reaching(held, last), [held, last]);
  return { log, need };
}
