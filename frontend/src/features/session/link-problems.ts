/** Why a login link could not be used. The values are those of the server. */
export const LINK_PROBLEMS = ["used", "incomplete", "unchecked"] as const;
export type LinkProblem = (typeof LINK_PROBLEMS)[number];
