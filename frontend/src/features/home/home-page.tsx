import { useState } from "react";
import type { Run } from "@/shared/api/runs";
import { storeDraft } from "@/shared/ui/drafts";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Composer } from "./composer";
import { RecentRuns } from "./recent-runs";
import "./home-page.css";

export function HomePage({ onAsked }: { onAsked(run: Run): void }) {
  // The composer keeps its draft itself; a new key makes it read the example that was put there.
  const [example, setExample] = useState(0);
  const focus = () => document.getElementById("question")?.focus();
  useHotkeys([{ keys: "n", does: "New question", run: focus }]);
  const offer = (question: string) => {
    storeDraft("question", question);
    setExample(example + 1);
    requestAnimationFrame(focus);
  };
  return (
    <main className="home">
      <h1>What should be found out?</h1>
      <Composer key={example} onAsked={onAsked} />
      <RecentRuns onExample={offer} />
    </main>
  );
}
