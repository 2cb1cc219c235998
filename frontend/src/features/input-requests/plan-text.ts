/** Converts a plan to editable text with one step per line, and back. Pure. */

export function renderPlan(steps: readonly string[]): string {
  return steps.map((step) => step.replace(/\s+/g, " ").trim()).join("\n");
}

export function parsePlan(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Return whether the plan was changed. Whitespace is ignored. */
export function isEdited(text: string, steps: readonly string[]): boolean {
  return parsePlan(text).join("\n") !== parsePlan(renderPlan(steps)).join("\n");
}
