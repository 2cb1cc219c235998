import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Question = Schemas["QuestionOut"];
export type AnswerRequest = Partial<Schemas["AnswerIn"]>;

/** What a run has asked, answered or not. */
export function questionsQuery(run: string) {
  return queryOptions({
    queryKey: ["questions", run],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/questions", { params: { path: { run_id: run } }, signal })),
  });
}

/** The first answer stands; a later one is refused. */
export function answerQuestion(run: string, number: number, answer: AnswerRequest) {
  return unwrap(
    api.POST("/api/v1/runs/{run_id}/questions/{number}/answer", {
      params: { path: { run_id: run, number } },
      body: answer as Schemas["AnswerIn"],
    }),
  );
}
