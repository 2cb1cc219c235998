/** Several questions at once: one per line, each a run with the same settings. Pure. */

import { MAX_QUESTION_CHARS, validateQuestion } from "./validation";

/** Maximum number of questions at once. */
export const MAX_QUESTIONS = 50;

/** Return the questions in a text, each once, without numbers or bullets in front of them. */
export function splitQuestions(text: string): string[] {
  const lines = text.split("\n").map((line) => line.replace(/^\s*(?:[-*•]|\d{1,3}[.)])\s+/, "").trim());
  return [...new Set(lines.filter(Boolean))];
}

/** Return what is wrong with a line. `null` means that it can be asked. */
export function validateLine(question: string): string | null {
  return validateQuestion(question.slice(0, MAX_QUESTION_CHARS + 1));
}
