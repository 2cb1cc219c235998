/** The error of a view that failed. */

import { useQueryClient } from "@tanstack/react-query";
import { useLanguage } from "@/shared/language/language";
import { ProblemNote } from "@/shared/ui/problem-note";

interface ViewErrorProps {
  error: unknown;
  /** The components that rendered the one that failed. `undefined` until React has said it. */
  componentStack: string | undefined;
  /** Render the view again. */
  onReset(): void;
}

/**
 * Shown instead of a view that threw an error. The navigation and the other views keep working. A retry drops the data
 * that only the failed view used, which may be the cause, and renders the view again.
 */
export function ViewError({ error, componentStack, onReset }: ViewErrorProps) {
  useLanguage();
  const client = useQueryClient();
  const retry = () => {
    client.removeQueries({ type: "inactive" });
    onReset();
  };
  return (
    <main className="view-problem">
      <ProblemNote error={error} onRetry={retry} details={describeError(error, componentStack)} />
    </main>
  );
}

/** Number of lines of a stack that a report needs. */
const MAX_STACK_LINES = 12;

/** Return what a report of an error needs. It has the address without its parameters, which may contain a question. */
export function describeError(error: unknown, componentStack: string | undefined): string {
  const stack = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return [
    // Not translated: the developers read the report.
    `Offing web UI at ${location.pathname.replace(/^\/shared\/.*/, "/shared/[token]")}, ${new Date().toISOString()}`,
    navigator.userAgent,
    firstLines(stack),
    firstLines(componentStack?.trim() ?? ""),
  ]
    .filter(Boolean)
    .join("\n\n");
}

function firstLines(text: string): string {
  return text.split("\n").slice(0, MAX_STACK_LINES).join("\n");
}
