import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { forgetStanding, promoteVersion, takeVersionBack, tryVersion, type Version } from "@/shared/api/training";
import { Dialog } from "@/shared/ui/dialog";
import { ProblemNote } from "@/shared/ui/problem-note";
import { percent } from "./training-words";

type Act = "promote" | "canary" | "back";

const SHARES = [0.05, 0.1, 0.25, 0.5];

/** What a version may do next; each asks once before it is done. */
export function VersionActions({ version, active }: { version: Version; active: Version | undefined }) {
  const [act, setAct] = useState<Act | null>(null);
  const close = () => setAct(null);
  const has = actsOf(version);
  return (
    <>
      {has.includes("promote") && (
        <button type="button" className="btn small" onClick={() => setAct("promote")}>
          Promote
        </button>
      )}
      {has.includes("canary") && (
        <button type="button" className="btn small" onClick={() => setAct("canary")}>
          Canary
        </button>
      )}
      {has.includes("back") && (
        <button type="button" className="btn small" onClick={() => setAct("back")}>
          {version.state === "canary" ? "Take back" : "Roll back"}
        </button>
      )}
      {act === "promote" && <PromoteDialog version={version} active={active} onClose={close} />}
      {act === "canary" && <CanaryDialog version={version} onClose={close} />}
      {act === "back" && <BackDialog version={version} onClose={close} />}
    </>
  );
}

function actsOf({ state }: Version): Act[] {
  if (state === "active") return ["back"];
  if (state === "canary") return ["promote", "back"];
  if (state === "candidate") return ["promote", "canary"];
  return state === "retired" ? ["promote"] : [];
}

function named(version: Version): string {
  return `${version.name}@${version.version}`;
}

interface ActDialogProps {
  title: string;
  doing: string;
  does: string;
  act(): Promise<unknown>;
  onClose(): void;
  /** What else may be done once it was refused. */
  otherwise?: (refused: boolean, done: () => void) => ReactNode;
  children: ReactNode;
}

/** Asks, does it, and closes; a refusal stays to be read. */
function ActDialog({ title, doing, does, act, onClose, otherwise, children }: ActDialogProps) {
  const client = useQueryClient();
  const done = () => {
    void forgetStanding(client);
    onClose();
  };
  const run = useMutation({ mutationFn: act, onSuccess: done });
  return (
    <Dialog open onClose={onClose} title={title}>
      {children}
      <ProblemNote error={run.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Leave it
        </button>
        {otherwise?.(run.isError, done)}
        <button type="button" className="btn primary" disabled={run.isPending} onClick={() => run.mutate()}>
          {run.isPending ? doing : does}
        </button>
      </div>
    </Dialog>
  );
}

function PromoteDialog({
  version,
  active,
  onClose,
}: {
  version: Version;
  active: Version | undefined;
  onClose(): void;
}) {
  const force = useMutation({ mutationFn: () => promoteVersion(version.id, true) });
  return (
    <ActDialog
      title={`Promote ${named(version)}?`}
      doing="Asking the gate…"
      does="Promote"
      act={() => promoteVersion(version.id, false)}
      onClose={onClose}
      otherwise={(refused, done) =>
        refused && (
          <button
            type="button"
            className="btn danger"
            disabled={force.isPending}
            onClick={() => force.mutate(undefined, { onSuccess: done })}
          >
            Promote without the gate
          </button>
        )
      }
    >
      <p>
        New runs that name {version.name} without a version get {named(version)} from then on.{" "}
        {active
          ? `It takes over from ${named(active)} if it is no worse on the tasks that both were evaluated on.`
          : "No version is active, so there is nothing to compare it with."}{" "}
        Runs under way keep theirs.
      </p>
      <ProblemNote error={force.error} />
    </ActDialog>
  );
}

function CanaryDialog({ version, onClose }: { version: Version; onClose(): void }) {
  const [share, setShare] = useState(0.1);
  return (
    <ActDialog
      title={`Try ${named(version)} on a share of new runs?`}
      doing="Starting…"
      does="Start the canary"
      act={() => tryVersion(version.id, share)}
      onClose={onClose}
    >
      <p>
        It answers this share of the new runs that name {version.name} without a version. A running stack takes it back
        by itself when its rollouts score surely worse than those of the active one.
      </p>
      <label className="canary-share">
        Share
        <select className="field num" value={share} onChange={(event) => setShare(Number(event.target.value))}>
          {SHARES.map((one) => (
            <option key={one} value={one}>
              {percent(one)}
            </option>
          ))}
        </select>
      </label>
    </ActDialog>
  );
}

function BackDialog({ version, onClose }: { version: Version; onClose(): void }) {
  const canary = version.state === "canary";
  return (
    <ActDialog
      title={canary ? `Take ${named(version)} back?` : `Roll ${named(version)} back?`}
      doing="Going back…"
      does={canary ? "Take back" : "Roll back"}
      act={() => takeVersionBack(version.id)}
      onClose={onClose}
    >
      <p>
        {canary
          ? "New runs get the active version again, and it becomes a candidate."
          : "The version that it took over from becomes active again, and it retires."}{" "}
        No file is touched. Runs under way keep theirs.
      </p>
    </ActDialog>
  );
}
