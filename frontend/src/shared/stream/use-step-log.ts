import { isCancelledError, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useAway } from "../api/reach";
import { fetchSteps, STEP_PAGE } from "../api/runs";
import { changeLog, logKey } from "./apply-events";
import { EMPTY_LOG, missingPages, reaching, type StepLog, withSteps } from "./step-log";

export interface HeldSteps {
  log: StepLog;
  /** Fetches what is not held between these steps, both included. Cheap to call again. */
  need(from: number, to: number): void;
  /** Why steps that were needed could not be fetched. `null`: all of them came, or are on their way. */
  error: unknown;
  /** Asks again for what could not be fetched. */
  retry(): void;
}

/** The run's steps as far as they are held; `last` is the highest number known from the run itself. */
export function useStepLog(run: string, last: number): HeldSteps {
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const failed = useRef(new Set<number>());
  // Filled by events and pages, never fetched, so that it cannot fail by itself.
  const stored = useQuery<StepLog>({
    queryKey: logKey(run),
    queryFn: skipToken,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const held = stored.data === undefined || stored.isError ? EMPTY_LOG : stored.data;
  useEffect(() => changeLog(client, run, (was) => reaching(was, last)), [client, run, last]);

  const fetchPage = useCallback(
    async (page: number) => {
      try {
        const answer = await client.fetchQuery({
          queryKey: ["steps-page", run, page],
          queryFn: ({ signal }) => fetchSteps(run, page * STEP_PAGE, signal),
          gcTime: 0,
        });
        changeLog(client, run, (now) => withSteps(now, answer.items));
        failed.current.delete(page);
        if (failed.current.size === 0) setError(null);
      } catch (reason) {
        if (isCancelledError(reason)) return; // the view that needed it was closed
        failed.current.add(page);
        setError(reason);
      }
    },
    [client, run],
  );
  const need = useCallback(
    (from: number, to: number) => {
      const known = reaching(client.getQueryData<StepLog>(logKey(run)) ?? EMPTY_LOG, last);
      for (const page of missingPages(known, from, to)) fetchPage(page);
    },
    [client, run, last, fetchPage],
  );
  const retry = useCallback(() => {
    for (const page of failed.current) fetchPage(page);
  }, [fetchPage]);
  const away = useAway();
  useEffect(() => {
    if (away === null) retry();
  }, [away, retry]);
  const log = useMemo(() => reaching(held, last), [held, last]);
  return { log, need, error, retry };
}
