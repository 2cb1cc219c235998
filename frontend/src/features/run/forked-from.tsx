import { Link } from "@tanstack/react-router";
import type { Run } from "@/shared/api/runs";

/** Where a fork's first steps were made. Nothing for other runs, and where that run is gone. */
export function ForkedFrom({ run }: { run: Pick<Run, "forked_from" | "forked_at"> }) {
  if (!run.forked_from) return null;
  return (
    <nav className="run-thread" aria-label="Run that this is a fork of">
      <span>Forked from</span>
      <Link to="/runs/$runId" params={{ runId: run.forked_from }}>
        step {run.forked_at} of another run
      </Link>
    </nav>
  );
}
