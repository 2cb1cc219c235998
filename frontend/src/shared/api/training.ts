/** Training jobs and policy versions. */

import { infiniteQueryOptions, keepPreviousData, type QueryClient, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Job = Schemas["TrainingJobOut"];
export type ListedJob = Schemas["TrainingJobListItem"];
export type JobDetail = Schemas["TrainingJobDetail"];
export type JobState = Job["state"];
export type Metric = Schemas["TrainingMetricOut"];
export type TrainingEvent = Schemas["TrainingEventOut"];
export type Version = Schemas["PolicyVersionOut"];
export type Evaluation = Schemas["EvaluationOut"];
export type DistillationPreview = Schemas["DistillationPreviewOut"];
export type DistillationRequest = Schemas["DistillIn"];
export type PromptLibrary = Schemas["PromptLibraryOut"];

const POLL_MS = 2_000;
const PAGE_SIZE = 20;

/** Heads of a critic. A job has only those that its algorithm needs. */
export const CRITIC_HEADS = ["value", "value_high", "value_low", "value_switch"] as const;

export function explainedVarianceMetric(head: (typeof CRITIC_HEADS)[number]): string {
  return `${head}/explained_variance`;
}

/** Metrics that the web UI shows. They are named in `workers/offing_trainer/step_metrics.py`. */
export const METRICS = [
  ...["reward", "success_rate", "violation_fraction", "entropy", "kl", "grad_norm", "clip_low", "clip_high"],
  ...CRITIC_HEADS.map(explainedVarianceMetric),
  ...["groups", "groups_examined", "groups_informative", "groups_stale", "groups_incomplete"],
];

/** Return whether a process runs the job, or will run it as soon as one is free. */
export function isLive(job: Pick<Job, "state">): boolean {
  return job.state === "running" || job.state === "queued";
}

export const jobsQuery = infiniteQueryOptions({
  queryKey: ["training-jobs"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      api.GET("/api/v1/training-jobs", {
        params: { query: { cursor: pageParam ?? undefined, limit: PAGE_SIZE } },
        signal,
      }),
    ),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next,
  refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.items.some(isLive)) ? POLL_MS : 5 * POLL_MS),
});

export function jobQuery(jobId: string) {
  return queryOptions({
    queryKey: ["training-job", jobId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/training-jobs/{job_id}", { params: { path: { job_id: jobId } }, signal })),
    refetchInterval: ({ state }) => (state.data && !isLive(state.data) ? false : POLL_MS),
  });
}

/** Metrics of all steps. Only new steps are fetched, repeatedly until the last step of the job is included. */
export function metricsQuery(job: Pick<Job, "id" | "step">) {
  const queryKey = ["training-metrics", job.id];
  return queryOptions({
    queryKey,
    queryFn: async ({ client, signal }) => {
      const cached = client.getQueryData<Metric[]>(queryKey) ?? [];
      const newMetrics = await fetchMetricsAfter(job.id, lastStep(cached), signal);
      return newMetrics.length > 0 ? [...cached, ...newMetrics] : cached;
    },
    refetchInterval: ({ state }) => (lastStep(state.data ?? []) < job.step ? POLL_MS : false),
    staleTime: 0,
    structuralSharing: false,
  });
}

function lastStep(metrics: readonly Metric[]): number {
  return metrics.at(-1)?.step ?? 0;
}

async function fetchMetricsAfter(jobId: string, after: number, signal: AbortSignal): Promise<Metric[]> {
  const metrics: Metric[] = [];
  for (let from: number | null = after; from !== null; ) {
    const page: Schemas["TrainingMetricList"] = await unwrap(
      api.GET("/api/v1/training-jobs/{job_id}/metrics", {
        params: { path: { job_id: jobId }, query: { after: from, name: METRICS } },
        signal,
      }),
    );
    metrics.push(...page.items);
    from = page.next;
  }
  return metrics;
}

/**
 * Metrics of a distillation job as of its last committed step. They are named in
 * `workers/offing_workers/prompt_distillation/job.py`.
 */
export function distillationMetricsQuery(job: Pick<Job, "id" | "step">) {
  return queryOptions({
    queryKey: ["distillation-metrics", job.id, job.step],
    queryFn: async ({ signal }) => {
      const page = await unwrap(
        api.GET("/api/v1/training-jobs/{job_id}/metrics", {
          params: { path: { job_id: job.id }, query: { after: Math.max(0, job.step - 1) } },
          signal,
        }),
      );
      return new Map(page.items.map(({ name, value }) => [name, value ?? 0]));
    },
    placeholderData: keepPreviousData,
    structuralSharing: false,
    staleTime: 60_000,
  });
}

/** Preview of what a distillation job would use. */
export function distillationPreviewQuery(name: string) {
  return queryOptions({
    queryKey: ["distillation-preview", name],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/prompt-libraries/{name}/preview", { params: { path: { name } }, signal })),
    refetchInterval: 15 * POLL_MS,
  });
}

/** Start a distillation job. Until it ends, the same request returns the same job. */
export function startDistillation(name: string, body: DistillationRequest) {
  return unwrap(api.POST("/api/v1/prompt-libraries/{name}/distill", { params: { path: { name } }, body }));
}

/** Text of a version of a prompt library. It never changes. */
export function promptLibraryQuery(versionId: string) {
  return queryOptions({
    queryKey: ["prompt-library", versionId],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/policy-versions/{policy_id}/prompt-library", {
          params: { path: { policy_id: versionId } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The first thousand events of a job. */
export function jobEventsQuery(job: Pick<Job, "id" | "state">) {
  return queryOptions({
    queryKey: ["training-events", job.id, isLive(job)], // reloaded once it has ended
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/training-jobs/{job_id}/events", {
          params: { path: { job_id: job.id }, query: { limit: 1000 } },
          signal,
        }),
      ),
    refetchInterval: isLive(job) ? POLL_MS : 5 * POLL_MS,
  });
}

/** Request an action. `pause` and `cancel` take effect after the current training step. */
export function controlJob(jobId: string, action: "pause" | "resume" | "cancel") {
  const params = { params: { path: { job_id: jobId } } };
  if (action === "pause") return unwrap(api.POST("/api/v1/training-jobs/{job_id}/pause", params));
  if (action === "resume") return unwrap(api.POST("/api/v1/training-jobs/{job_id}/resume", params));
  return unwrap(api.POST("/api/v1/training-jobs/{job_id}/cancel", params));
}

/** The newest 200 versions of all policies, newest first. */
export const versionsQuery = queryOptions({
  queryKey: ["policies"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/policy-versions", { params: { query: { limit: 200 } }, signal })),
  refetchInterval: 5 * POLL_MS,
});

/** The newest 200 evaluations of all versions of a policy, newest first. */
export function evaluationsQuery(name: string) {
  return queryOptions({
    queryKey: ["evaluations", name],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/evaluations", { params: { query: { name, limit: 200 } }, signal })),
    refetchInterval: 5 * POLL_MS,
  });
}

/** Promote a version. `force` skips the promotion gate. */
export function promoteVersion(versionId: string, force: boolean) {
  return unwrap(
    api.POST("/api/v1/policy-versions/{policy_id}/promote", {
      params: { path: { policy_id: versionId } },
      body: { force, by_canary: false, confident: true, margin: 0 },
    }),
  );
}

export function startCanary(versionId: string, fraction: number) {
  return unwrap(
    api.POST("/api/v1/policy-versions/{policy_id}/canary", {
      params: { path: { policy_id: versionId } },
      body: { fraction: fraction },
    }),
  );
}

export function rollBackVersion(versionId: string) {
  return unwrap(
    api.POST("/api/v1/policy-versions/{policy_id}/rollback", { params: { path: { policy_id: versionId } } }),
  );
}

/** Reload what depends on the state of a version: version lists, job events and distillation previews. */
export function invalidateVersionQueries(client: QueryClient): Promise<unknown> {
  return Promise.all(
    ["policies", "training-events", "distillation-preview"].map((key) => client.invalidateQueries({ queryKey: [key] })),
  );
}
