import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import {
  invalidateVersionQueries,
  promoteVersion,
  rollBackVersion,
  startCanary,
  type Version,
} from "@/shared/api/training";
import { Dialog } from "@/shared/ui/dialog";
import { ProblemNote } from "@/shared/ui/problem-note";
import { formatPercent } from "./training-labels";

type VersionAction = "promote" | "canary" | "back";

const CANARY_SHARES = [0.05, 0.1, 0.25, 0.5];

/** Actions of a version. Each asks for confirmation. */
export function VersionActions({ version, active }: { version: Version; active: Version | undefined }) {
  const [openAction, setOpenAction] = useState<VersionAction | null>(null);
  const close = () => setOpenAction(null);
  const allowedActions = listActions(version);
  return (
    <>
      {allowedActions.includes("promote") && (
        <button type="button" className="btn small" onClick={() => setOpenAction("promote")}>
          <Trans>Promote</Trans>
        </button>
      )}
      {allowedActions.includes("canary") && (
        <button type="button" className="btn small" onClick={() => setOpenAction("canary")}>
          <Trans>Canary</Trans>
        </button>
      )}
      {allowedActions.includes("back") && (
        <button type="button" className="btn small" onClick={() => setOpenAction("back")}>
          {version.state === "canary" ? t`Withdraw` : t`Roll back`}
        </button>
      )}
      {openAction === "promote" && <PromoteDialog version={version} active={active} onClose={close} />}
      {openAction === "canary" && <CanaryDialog version={version} onClose={close} />}
      {openAction === "back" && <RollBackDialog version={version} onClose={close} />}
    </>
  );
}

function listActions({ state }: Version): VersionAction[] {
  if (state === "active") return ["back"];
  if (state === "canary") return ["promote", "back"];
  if (state === "candidate") return ["promote", "canary"];
  return state === "retired" ? ["promote"] : [];
}

function versionName(version: Version): string {
  return `${version.name}@${version.version}`;
}

interface ActionDialogProps {
  title: string;
  pendingLabel: string;
  actionLabel: string;
  action(): Promise<unknown>;
  onClose(): void;
  /** Another action, offered after the first was rejected. */
  secondaryAction?: (isRejected: boolean, done: () => void) => ReactNode;
  children: ReactNode;
}

/** Asks for confirmation, runs the action and closes. An error stays visible. */
function ActionDialog({
  title,
  pendingLabel,
  actionLabel,
  action,
  onClose,
  secondaryAction,
  children,
}: ActionDialogProps) {
  const client = useQueryClient();
  const done = () => {
    void invalidateVersionQueries(client);
    onClose();
  };
  const mutation = useMutation({ mutationFn: action, onSuccess: done });
  return (
    <Dialog open onClose={onClose} title={title}>
      {children}
      <ProblemNote error={mutation.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          <Trans>Cancel</Trans>
        </button>
        {secondaryAction?.(mutation.isError, done)}
        <button type="button" className="btn primary" disabled={mutation.isPending} onClick={() => mutation.mutate()}>
          {mutation.isPending ? pendingLabel : actionLabel}
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
    <ActionDialog
      title={t`Promote ${versionName(version)}?`}
      pendingLabel={t`Checking the gate…`}
      actionLabel={t`Promote`}
      action={() => promoteVersion(version.id, false)}
      onClose={onClose}
      secondaryAction={(isRejected, done) =>
        isRejected && (
          <button
            type="button"
            className="btn danger"
            disabled={force.isPending}
            onClick={() => force.mutate(undefined, { onSuccess: done })}
          >
            <Trans>Promote without the gate</Trans>
          </button>
        )
      }
    >
      <p>
        <Trans>
          New runs that name {version.name} without a version will use {versionName(version)}.
        </Trans>{" "}
        {active
          ? t`It replaces ${versionName(active)} if it is no worse on the tasks that both were evaluated on.`
          : t`No version is active, so there is no comparison.`}{" "}
        <Trans>Active runs keep their version.</Trans>
      </p>
      <ProblemNote error={force.error} />
    </ActionDialog>
  );
}

function CanaryDialog({ version, onClose }: { version: Version; onClose(): void }) {
  const [share, setShare] = useState(0.1);
  return (
    <ActionDialog
      title={t`Start a canary of ${versionName(version)}?`}
      pendingLabel={t`Starting…`}
      actionLabel={t`Start canary`}
      action={() => startCanary(version.id, share)}
      onClose={onClose}
    >
      <p>
        <Trans>
          This fraction of the new runs that name {version.name} without a version will use it. A running stack
          withdraws it automatically if its rollouts score significantly worse than those of the active version.
        </Trans>
      </p>
      <label className="canary-share">
        <Trans>Fraction of new runs</Trans>{" "}
        <select className="field num" value={share} onChange={(event) => setShare(Number(event.target.value))}>
          {CANARY_SHARES.map((one) => (
            <option key={one} value={one}>
              {formatPercent(one)}
            </option>
          ))}
        </select>
      </label>
    </ActionDialog>
  );
}

function RollBackDialog({ version, onClose }: { version: Version; onClose(): void }) {
  const canary = version.state === "canary";
  return (
    <ActionDialog
      title={canary ? t`Withdraw ${versionName(version)}?` : t`Roll back ${versionName(version)}?`}
      pendingLabel={t`Rolling back…`}
      actionLabel={canary ? t`Withdraw` : t`Roll back`}
      action={() => rollBackVersion(version.id)}
      onClose={onClose}
    >
      <p>
        {canary
          ? t`New runs use the active version again, and this version becomes a candidate.`
          : t`The version that it replaced becomes active again, and this version is retired.`}{" "}
        <Trans>No files are changed. Active runs keep their version.</Trans>
      </p>
    </ActionDialog>
  );
}
