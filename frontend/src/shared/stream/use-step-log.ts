import { isCancelledError, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { fetchSteps, STEP_PAGE_SIZE } from "../api/runs";
import { useServerOutage } from "../api/server-status";
import { logKey, updateLog } from "./apply-events";
import { addSteps, EMPTY_LOG, extendLog, listMissingPages, type StepLog } from "./step-log";

export interface StepLogState {
  log: StepLog;
  /** Fetches the steps in this range, both ends included, that are not loaded. Cheap to call again. */
  loadRange(from: number, to: number): void;
  /** Why steps could not be fetched. `null` means that all of them are loaded or being fetched. */
  error: unknown;
  /** Fetches again what could not be fetched. */
  retry(): void;
}

/** Return the loaded steps of the run. `last` is the highest sequence number known from the run itself. */
export function useStepLog(runId: string, last: number): StepLogState {
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const failedPages = useRef(new Set<number>());
  // Filled by events and pages, never fetched, so it cannot fail on its own.
  const stored = useQuery<StepLog>({
    queryKey: logKey(runId),
    queryFn: skipToken,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const loaded = stored.data === undefined || stored.isError ? EMPTY_LOG : stored.data;
  useEffect(() => updateLog(client, runId, (was) => extendLog(was, last)), [client, runId, last]);

  const fetchPage = useCallback(
    async (page: number) => {
      try {
        const stepPage = await client.fetchQuery({
          queryKey: ["steps-page", runId, page],
          queryFn: ({ signal }) => fetchSteps(runId, page * STEP_PAGE_SIZE, signal),
          gcTime: 0,
        });
        updateLog(client, runId, (now) => addSteps(now, stepPage.items));
        failedPages.current.delete(page);
        if (failedPages.current.size === 0) setError(null);
      } catch (reason) {
        if (isCancelledError(reason)) return; // the view that needed it was closed
        failedPages.current.add(page);
        setError(reason);
      }
    },
    [client, runId],
  );
  const loadRange = useCallback(
    (from: number, to: number) => {
      const knownLog = extendLog(client.getQueryData<StepLog>(logKey(runId)) ?? EMPTY_LOG, last);
      for (const page of listMissingPages(knownLog, from, to)) fetchPage(page);
    },
    [client, runId, last, fetchPage],
  );
  const retry = useCallback(() => {
    for (const page of failedPages.current) fetchPage(page);
  }, [fetchPage]);
  const outage = useServerOutage();
  useEffect(() => {
    if (outage === null) retry();
  }, [outage, retry]);
  const log = useMemo(() => extendLog(loaded, last), [loaded, last]);
  return { log, loadRange, error, retry };
}
