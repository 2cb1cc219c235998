import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useEffect, useRef, useState } from "react";
import type { Run } from "@/shared/api/runs";
import { readDraft, storeDraft } from "@/shared/ui/drafts";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { lazyView } from "@/shared/ui/lazy-view";
import { Composer } from "./composer";
import { useFirstVisit } from "./use-first-visit";
import "./home-page.css";

// Below the form, which is shown first.
const FirstVisit = lazyView(msg`the first steps`, async () => (await import("./first-visit")).FirstVisit);
export const LatestRuns = lazyView(msg`the runs`, async () => (await import("./recent-runs")).LatestRuns);

interface HomePageProps {
  /** A question to put into the form. `null` means that the form keeps its draft. */
  ask: string | null;
  /** Called when the question is in the form. `replaced` is the draft that it replaced, empty if there was none. */
  onAskFilled(replaced: string): void;
  /** Id of a saved way to ask whose options the form gets. `null` means that it keeps its options. */
  preset: string | null;
  onPresetApplied(): void;
  /** Text that the listed questions contain. */
  search: string;
  onSearch(text: string): void;
  onRunCreated(run: Run): void;
}

export function HomePage(props: HomePageProps) {
  const { ask, onAskFilled, preset, onPresetApplied, search, onSearch, onRunCreated } = props;
  // The composer keeps its draft itself. A new key makes it read the question that was stored.
  const [draftKey, setDraftKey] = useState(0);
  const focus = () => document.getElementById("question")?.focus();
  useHotkeys([{ keys: "n", description: t`New question`, run: focus }]);
  const fill = (question: string) => {
    storeDraft("question", question);
    setDraftKey((before) => before + 1);
    requestAnimationFrame(focus);
  };
  const firstVisit = useFirstVisit();
  const begin = (text: string) => (text ? fill(text) : focus());
  const latest = useRef({ fill, onAskFilled });
  useEffect(() => {
    latest.current = { fill, onAskFilled };
  });
  useEffect(() => {
    if (ask === null) return;
    const replaced = readDraft("question", "");
    latest.current.fill(ask);
    latest.current.onAskFilled(replaced === ask ? "" : replaced);
  }, [ask]);
  return (
    <main className="home">
      <h1>
        <Trans>What do you want to find out?</Trans>
      </h1>
      <Composer key={draftKey} preset={preset} onPresetApplied={onPresetApplied} onRunCreated={onRunCreated} />
      {firstVisit.isShown && <FirstVisit onQuestion={begin} onBegin={firstVisit.begin} onClose={firstVisit.close} />}
      <LatestRuns search={search} onSearch={onSearch} onExample={fill} />
    </main>
  );
}
