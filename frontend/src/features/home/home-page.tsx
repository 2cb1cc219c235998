import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import type { Run } from "@/shared/api/runs";
import { storeDraft } from "@/shared/ui/drafts";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Composer } from "./composer";
import { RecentRuns } from "./recent-runs";
import "./home-page.css";

export function HomePage({ onRunCreated }: { onRunCreated(run: Run): void }) {
  // The composer keeps its draft itself. A new key makes it read the example that was stored.
  const [exampleKey, setExampleKey] = useState(0);
  const focus = () => document.getElementById("question")?.focus();
  useHotkeys([{ keys: "n", description: t`New question`, run: focus }]);
  const fillExample = (question: string) => {
    storeDraft("question", question);
    setExampleKey(exampleKey + 1);
    requestAnimationFrame(focus);
  };
  return (
    <main className="home">
      <h1>
        <Trans>What do you want to find out?</Trans>
      </h1>
      <Composer key={exampleKey} onRunCreated={onRunCreated} />
      <RecentRuns onExample={fillExample} />
    </main>
  );
}
