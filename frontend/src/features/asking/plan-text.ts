/** A plan as text to edit, one step a line, and back. Pure. */

export function planText(steps: readonly string[]): string {
  return steps.map((step) => step.replace(/\s+/g, " ").trim()).join("\n");
}

export function planSteps(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Whether a person has changed the plan, spaces apart. */
export function isEdited(text: string, steps: readonly string[]): boolean {
  return planSteps(text).join("\n") !== planSteps(planText(steps)).join("\n");
}
