/** Training jobs and the policy versions that come of them. */

import { infiniteQueryOptions, keepPreviousData, type QueryClient, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Job = Schemas["JobOut"];
export type ListedJob = Schemas["JobListed"];
export type JobDetail = Schemas["JobDetail"];
export type JobState = Job["state"];
export type Metric = Schemas["MetricOut"];
export type TrainingEvent = Schemas["EventOut"];
export type Version = Schemas["PolicyOut"];
export type Evaluation = Schemas["EvaluationOut"];
export type Outlook = Schemas["OutlookOut"];
export type LearnRequest = Schemas["LearnIn"];
export type LibraryText = Schemas["LibraryText"];

const EVERY = 2_000;
const PAGE = 20;

/** Heads of a critic; a job has at most those that its algorithm asks. */
export const HEADS = ["value", "value_high", "value_low", "value_term"] as const;

export function explainedBy(head: (typeof HEADS)[number]): string {
  return `${head}/explained_variance`;
}

/** Figures that the page draws; `workers/offing_trainer/figures.py` names them. */
export const FIGURES = [
  ...["reward", "success", "entropy", "kl", "grad_norm", "clip_low", "clip_high"],
  ...HEADS.map(explainedBy),
  ...["groups", "groups_looked_at", "groups_informative", "groups_stale", "groups_short"],
];

/** True where a process works on the job, or will as soon as one is free. */
export function isLive(job: Pick<Job, "state">): boolean {
  return job.state === "running" || job.state === "queued";
}

export const jobsQuery = infiniteQueryOptions({
  queryKey: ["training-jobs"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      api.GET("/api/v1/training-jobs", {
        params: { query: { cursor: pageParam ?? undefined, limit: PAGE } },
        signal,
      }),
    ),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next,
  refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.items.some(isLive)) ? EVERY : 5 * EVERY),
});

export function jobQuery(id: string) {
  return queryOptions({
    queryKey: ["training-job", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/training-jobs/{job_id}", { params: { path: { job_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data && !isLive(state.data) ? false : EVERY),
  });
}

/** Figures of all steps. Only those of new steps are fetched; asked again until the job's last step is there. */
export function metricsQuery(job: Pick<Job, "id" | "step">) {
  const queryKey = ["training-metrics", job.id];
  return queryOptions({
    queryKey,
    queryFn: async ({ client, signal }) => {
      const known = client.getQueryData<Metric[]>(queryKey) ?? [];
      const fresh = await metricsAfter(job.id, lastStep(known), signal);
      return fresh.length > 0 ? [...known, ...fresh] : known;
    },
    refetchInterval: ({ state }) => (lastStep(state.data ?? []) < job.step ? EVERY : false),
    staleTime: 0,
    structuralSharing: false,
  });
}

function lastStep(metrics: readonly Metric[]): number {
  return metrics.at(-1)?.step ?? 0;
}

async function metricsAfter(job: string, after: number, signal: AbortSignal): Promise<Metric[]> {
  const found: Metric[] = [];
  for (let from: number | null = after; from !== null; ) {
    const page: Schemas["MetricList"] = await unwrap(
      api.GET("/api/v1/training-jobs/{job_id}/metrics", {
        params: { path: { job_id: job }, query: { after: from, name: FIGURES } },
        signal,
      }),
    );
    found.push(...page.items);
    from = page.next;
  }
  return found;
}

/** Figures of a job that learns, as of its last committed step; `workers/offing_workers/prompts/learning.py` names them. */
export function learningQuery(job: Pick<Job, "id" | "step">) {
  return queryOptions({
    queryKey: ["learning-figures", job.id, job.step],
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

/** What a job that is asked for now would learn from. */
export function outlookQuery(name: string) {
  return queryOptions({
    queryKey: ["outlook", name],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/prompt-libraries/{name}/outlook", { params: { path: { name } }, signal })),
    refetchInterval: 15 * EVERY,
  });
}

/** The same request gives the same job until it has ended. */
export function learn(name: string, body: LearnRequest) {
  return unwrap(api.POST("/api/v1/prompt-libraries/{name}/jobs", { params: { path: { name } }, body }));
}

/** What a version of a prompt library says; it never changes. */
export function libraryTextQuery(id: string) {
  return queryOptions({
    queryKey: ["library-text", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/policies/{policy_id}/library", { params: { path: { policy_id: id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The first thousand decisions about a job. */
export function jobEventsQuery(job: Pick<Job, "id" | "state">) {
  return queryOptions({
    queryKey: ["training-events", job.id, isLive(job)], // asked again at once when it has ended
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/training-jobs/{job_id}/events", {
          params: { path: { job_id: job.id }, query: { limit: 1000 } },
          signal,
        }),
      ),
    refetchInterval: isLive(job) ? EVERY : 5 * EVERY,
  });
}

/** `pause` and `cancel` are seen after the step under way. */
export function tellJob(id: string, verb: "pause" | "resume" | "cancel") {
  const params = { params: { path: { job_id: id } } };
  if (verb === "pause") return unwrap(api.POST("/api/v1/training-jobs/{job_id}/pause", params));
  if (verb === "resume") return unwrap(api.POST("/api/v1/training-jobs/{job_id}/resume", params));
  return unwrap(api.POST("/api/v1/training-jobs/{job_id}/cancel", params));
}

/** Versions of every name, newest first; the newest 200. */
export const versionsQuery = queryOptions({
  queryKey: ["policies"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/policies", { params: { query: { limit: 200 } }, signal })),
  refetchInterval: 5 * EVERY,
});

/** Evaluations of all versions of a name, newest first; the newest 200. */
export function evaluationsQuery(name: string) {
  return queryOptions({
    queryKey: ["evaluations", name],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/evaluations", { params: { query: { name, limit: 200 } }, signal })),
    refetchInterval: 5 * EVERY,
  });
}

/** `force`: without asking the gate. */
export function promoteVersion(id: string, force: boolean) {
  return unwrap(
    api.POST("/api/v1/policies/{policy_id}/promote", { params: { path: { policy_id: id } }, body: { force } }),
  );
}

export function tryVersion(id: string, share: number) {
  return unwrap(
    api.POST("/api/v1/policies/{policy_id}/canary", { params: { path: { policy_id: id } }, body: { share } }),
  );
}

export function takeVersionBack(id: string) {
  return unwrap(api.POST("/api/v1/policies/{policy_id}/rollback", { params: { path: { policy_id: id } } }));
}

/** After a version changed its place: what shows versions, and what was decided about the jobs they came of. */
export function forgetStanding(client: QueryClient): Promise<unknown> {
  return Promise.all(
    ["policies", "training-events", "outlook"].map((key) => client.invalidateQueries({ queryKey: [key] })),
  );
}
