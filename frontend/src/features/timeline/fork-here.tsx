import { t } from "@lingui/core/macro";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { forkRun } from "@/shared/api/runs";
import { randomId } from "@/shared/stream/browser";
import { ProblemNote } from "@/shared/ui/problem-note";

/**
 * Forks the run after a step and opens the new run. A retry uses the same idempotency key, so it creates no second
 * fork.
 */
export function ForkHere({ runId, seq }: { runId: string; seq: number }) {
  const navigate = useNavigate();
  const key = useRef(randomId());
  const fork = useMutation({
    mutationFn: () => forkRun(runId, seq, key.current),
    onSuccess: (created) => {
      key.current = randomId();
      return navigate({ to: "/runs/$runId", params: { runId: created.id } });
    },
  });
  return (
    <p>
      <button
        type="button"
        className="linkish"
        disabled={fork.isPending}
        title={t`Start a new run that continues after this step. The recorded steps up to here are not repeated.`}
        onClick={() => fork.mutate()}
      >
        {fork.isPending ? t`Forking…` : t`Fork from here`}
      </button>
      <ProblemNote error={fork.error} />
    </p>
  );
}
