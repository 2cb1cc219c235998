import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteToolPolicy, type NamedToolPolicy, putToolPolicy, toolPoliciesQuery } from "@/shared/api/settings";
import { formatAgo } from "@/shared/format/numbers";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { EmptyState } from "@/shared/ui/empty-state";
import { useNow } from "@/shared/ui/hooks";
import { Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import styles from "./installation.module.css";
import { type Opened, PolicyEditor } from "./policy-editor";

/** Tool policies that are kept under a name, and an editor that checks one and decides sample calls. */
export function PoliciesSection() {
  const policies = useQuery(toolPoliciesQuery);
  const [opened, setOpened] = useState<Opened | null>(null);
  return (
    <div className={styles.stack}>
      <p className={styles.intro}>
        <Trans>
          A tool policy decides each call of a tool before it is made: allow, ask a person, replace or forbid. A
          question without one has the default policy.
        </Trans>
      </p>
      <Loaded query={policies} label={t`the tool policies`} empty={describeNoPolicies}>
        {(listed) => (
          <Panel title={t`Your tool policies`} level={3}>
            <PolicyList policies={listed} onOpen={setOpened} />
          </Panel>
        )}
      </Loaded>
      <PolicyEditor key={opened?.name ?? ""} opened={opened} />
    </div>
  );
}

function describeNoPolicies(policies: readonly NamedToolPolicy[]) {
  if (policies.length > 0) return null;
  return (
    <EmptyState title={t`No tool policy is stored`}>
      <Trans>Write one below, try sample calls, and store it under a name. Then a question can use it.</Trans>
    </EmptyState>
  );
}

interface ListProps {
  policies: readonly NamedToolPolicy[];
  onOpen(policy: Opened): void;
}

function PolicyList({ policies, onOpen }: ListProps) {
  const now = useNow(60_000);
  const [deleting, setDeleting] = useState<NamedToolPolicy | null>(null);
  return (
    <>
      <ul className={styles.list}>
        {policies.map((one) => (
          <li key={one.name} className={styles.row}>
            <div className={styles.head}>
              <span className={styles.name}>{one.name}</span>
              <span className={styles.note}>
                {one.policy === null ? t`This version of Offing cannot read it.` : formatAgo(one.updated_at, now)}
              </span>
              <span className={styles.actions}>
                <Button
                  small
                  aria-label={t`Edit ${one.name}`}
                  disabled={one.policy === null}
                  onClick={() => onOpen({ name: one.name, text: JSON.stringify(one.policy, null, 2) })}
                >
                  <Trans>Edit</Trans>
                </Button>
                <Button small aria-label={t`Delete ${one.name}`} onClick={() => setDeleting(one)}>
                  <Trans>Delete</Trans>
                </Button>
              </span>
            </div>
          </li>
        ))}
      </ul>
      {deleting && <DeletePolicy policy={deleting} onClose={() => setDeleting(null)} />}
    </>
  );
}

/** Deleting can be undone while the message is shown. */
function DeletePolicy({ policy, onClose }: { policy: NamedToolPolicy; onClose(): void }) {
  const client = useQueryClient();
  const toast = useToast();
  const refresh = () => client.invalidateQueries({ queryKey: toolPoliciesQuery.queryKey });
  const restore = useMutation({
    mutationFn: () => putToolPolicy(policy.name, policy.policy),
    onSuccess: refresh,
    onError: (error) => toast({ text: t`${policy.name} was not restored. ${error.message}` }),
  });
  const remove = useMutation({
    mutationFn: () => deleteToolPolicy(policy.name),
    onSuccess: async () => {
      await refresh();
      const undo = policy.policy === null ? undefined : () => restore.mutate();
      toast({ text: t`${policy.name} was deleted.`, ...(undo && { undo }) });
      onClose();
    },
  });
  return (
    <Dialog open onClose={onClose} title={t`Delete ${policy.name}?`}>
      <p>
        <Trans>Runs that were submitted with it keep it.</Trans>
      </p>
      <ProblemNote error={remove.error ?? restore.error} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          <Trans>Delete</Trans>
        </Button>
      </div>
    </Dialog>
  );
}
