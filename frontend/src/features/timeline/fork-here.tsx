import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { forkRun } from "@/shared/api/runs";
import { randomName } from "@/shared/stream/browser";
import { ProblemNote } from "@/shared/ui/problem-note";

/** Goes on from a step in a run of its own, and shows that run. Asked again after a lost answer, it makes no second one. */
export function ForkHere({ run, seq }: { run: string; seq: number }) {
  const navigate = useNavigate();
  const key = useRef(randomName());
  const fork = useMutation({
    mutationFn: () => forkRun(run, seq, key.current),
    onSuccess: (made) => {
      key.current = randomName();
      return navigate({ to: "/runs/$runId", params: { runId: made.id } });
    },
  });
  return (
    <p>
      <button
        type="button"
        className="linkish"
        disabled={fork.isPending}
        title="A new run goes on after this step; what is on record up to here is not done again"
        onClick={() => fork.mutate()}
      >
        {fork.isPending ? "Forking…" : "Fork from here"}
      </button>
      <ProblemNote error={fork.error} />
    </p>
  );
}
