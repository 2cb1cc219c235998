import { msg } from "@lingui/core/macro";
import { useState } from "react";
import { type RunDetail, runName } from "@/shared/api/runs";
import { lazyView } from "@/shared/ui/lazy-view";

const RunMenu = lazyView(msg`the menu of the run`, async () => (await import("./run-menu")).RunMenu, true);

/** The name of a run with its tags, and the menu that changes them. The question stands below a title of its own. */
export function RunTitle({ run }: { run: RunDetail }) {
  const [isRenaming, setRenaming] = useState(false);
  return (
    <>
      <div className="run-title">
        <h1 dir="auto" hidden={isRenaming}>
          {runName(run)}
        </h1>
        <RunMenu run={run} isRenaming={isRenaming} onRenaming={setRenaming} />
      </div>
      {run.given_title && (
        <p dir="auto" className="run-question" title={run.question}>
          {run.question}
        </p>
      )}
    </>
  );
}
