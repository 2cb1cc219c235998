/** What helps a person to ask: statistics of past runs, and saved ways to ask. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type RunStatistics = Schemas["RunStatisticsOut"];
export type QuestionPreset = Schemas["QuestionPresetOut"];
/** The settings of a question preset in a request. */
export type QuestionSettings = Schemas["QuestionSettings-Input"];

export const runStatisticsQuery = queryOptions({
  queryKey: ["run-statistics"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/run-statistics", { signal })),
  staleTime: 60_000,
});

export const questionPresetsQuery = queryOptions({
  queryKey: ["question-presets"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/question-presets", { signal })),
  staleTime: 60_000,
});

export function createQuestionPreset(name: string, settings: QuestionSettings) {
  return unwrap(api.POST("/api/v1/question-presets", { body: { name, settings } }));
}

/** Change the name or the settings. Omitted fields are unchanged. */
export function changeQuestionPreset(id: string, change: { name?: string; settings?: QuestionSettings }) {
  return unwrap(
    api.PATCH("/api/v1/question-presets/{preset_id}", { params: { path: { preset_id: id } }, body: change }),
  );
}

export function deleteQuestionPreset(id: string) {
  return unwrap(api.DELETE("/api/v1/question-presets/{preset_id}", { params: { path: { preset_id: id } } }));
}
