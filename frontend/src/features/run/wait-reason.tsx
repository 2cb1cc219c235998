import { Trans } from "@lingui/react/macro";
import type { RunDetail } from "@/shared/api/runs";
import { waitReason } from "@/shared/texts/wait-texts";

/** What a run waits for, as the server says it. */
export function WaitReason({ run }: { run: RunDetail }) {
  return <Trans>waiting for {waitReason(run)}</Trans>;
}
