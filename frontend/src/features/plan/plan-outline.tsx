import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { changePlan, type PlanChange, type PlanItem, planKey, planQuery, type RunPlan } from "@/shared/api/run-views";
import { Button } from "@/shared/ui/button";
import { useDraft } from "@/shared/ui/drafts";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import { beginDraft, listSent, type OutlineDraft } from "./outline-draft";
import { OutlineEditor } from "./outline-editor";
import styles from "./plan-outline.module.css";

interface PlanOutlineProps {
  runId: string;
  active: boolean;
  onPick(seq: number): void;
}

/** The parts of the question that the run works on. They can be changed while it runs. */
export function PlanOutline({ runId, active, onPick }: PlanOutlineProps) {
  const plan = useQuery(planQuery(runId, active));
  return (
    <Loaded query={plan} label={t`the plan`}>
      {(loaded) => <LoadedOutline runId={runId} active={active} plan={loaded} onPick={onPick} />}
    </Loaded>
  );
}

function LoadedOutline({ runId, active, plan, onPick }: PlanOutlineProps & { plan: RunPlan }) {
  const [draft, setDraft] = useDraft<OutlineDraft | null>(`outline.${runId}`, null);
  const { send, hasConflict } = useChange(runId, plan, () => setDraft(null));
  if (!active || !plan.supports_changes) {
    return (
      <>
        <Outline plan={plan} onPick={onPick} />
        {!active && draft && <UnsentDraft draft={draft} onDiscard={() => setDraft(null)} />}
        {active && (
          <p className={styles.note}>
            <Trans>This graph has no plan that can be changed. Write a message to the run instead.</Trans>
          </p>
        )}
      </>
    );
  }
  if (draft) {
    return (
      <OutlineEditor
        plan={plan}
        draft={draft}
        isSending={send.isPending}
        error={hasConflict ? null : send.error}
        onChange={setDraft}
        onSend={() => send.mutate({ version: draft.version, items: listSent(draft) })}
        onDiscard={() => {
          setDraft(null);
          send.reset();
        }}
      />
    );
  }
  return (
    <>
      <Outline plan={plan} onPick={onPick} />
      <Button small disabled={send.isPending} onClick={() => setDraft(beginDraft(plan))}>
        {plan.items.length > 0 ? t`Edit the plan` : t`Write a plan`}
      </Button>
      <ProblemNote error={send.error} />
    </>
  );
}

interface Change {
  version: number;
  items: readonly PlanItem[];
}

/** Sends a change. It can be undone by another change. */
function useChange(runId: string, plan: RunPlan, onSent: () => void) {
  const client = useQueryClient();
  const toast = useToast();
  const send = useMutation({
    mutationFn: ({ version, items }: Change) => changePlan(runId, version, items),
    onSuccess: (changed) => {
      const before = plan.items.map(({ text, must_answer: must }) => ({ text, must_answer: must }));
      client.setQueryData(planQuery(runId, true).queryKey, changed);
      onSent();
      const undo = () => send.mutate({ version: changed.version, items: before });
      toast({ text: t`The plan was changed.`, ...(before.length > 0 && { undo }) });
    },
    // Somebody else may have changed the plan. The editor shows what it is now.
    onError: () => client.invalidateQueries({ queryKey: planKey(runId) }),
  });
  return { send, hasConflict: send.variables !== undefined && send.variables.version !== plan.version };
}

function Outline({ plan, onPick }: { plan: RunPlan; onPick(seq: number): void }) {
  if (plan.items.length === 0) {
    return (
      <p className={styles.note}>
        <Trans>No parts of the question are recorded.</Trans>
      </p>
    );
  }
  return (
    <>
      <ol className={styles.outline}>
        {plan.items.map((item) => (
          <li key={item.text} className={styles.item}>
            <span className={`${styles.state} ${styles[item.state]}`}>
              <span className="visually-hidden">{i18n._(STATES[item.state])}</span>
            </span>
            <span>
              <span dir="auto">{item.text}</span>
              {item.must_answer && (
                <span className={styles.must}>
                  <Trans>must be answered</Trans>
                </span>
              )}
              {item.missing && (
                <span dir="auto" className={styles.missing}>
                  {item.missing}
                </span>
              )}
            </span>
          </li>
        ))}
      </ol>
      {plan.change && <ChangeState change={plan.change} onPick={onPick} />}
    </>
  );
}

const STATES: Record<RunPlan["items"][number]["state"], MessageDescriptor> = {
  open: msg`open`,
  partly: msg`partly answered`,
  covered: msg`answered`,
  not_in_documents: msg`not in the documents`,
};

/** How far the latest change is, with links to the steps that read and used it. */
function ChangeState({ change, onPick }: { change: PlanChange; onPick(seq: number): void }) {
  const link = (seq: number, text: string) => (
    <button type="button" className={styles.link} onClick={() => onPick(seq)}>
      {text}
    </button>
  );
  return (
    <p className={styles.note} role="status">
      {change.state === "queued" && <Trans>Your change waits: the run reads it at the end of its turn.</Trans>}
      {change.state === "delivered" && (
        <Trans>Your change was read in {link(change.consumed_seq, t`step ${change.consumed_seq}`)}.</Trans>
      )}
      {change.state === "used" && (
        <Trans>Your change was used in {link(change.used_seq, t`step ${change.used_seq}`)}.</Trans>
      )}
      {change.state === "too_late" && <Trans>The run ended before it read your change.</Trans>}
    </p>
  );
}

function UnsentDraft({ draft, onDiscard }: { draft: OutlineDraft; onDiscard(): void }) {
  return (
    <div className={styles.note}>
      <p>
        <Trans>The run ended before you sent these parts:</Trans>
      </p>
      <ul>
        {listSent(draft).map(({ text }) => (
          <li key={text} dir="auto">
            {text}
          </li>
        ))}
      </ul>
      <Button small onClick={onDiscard}>
        <Trans>Discard them</Trans>
      </Button>
    </div>
  );
}
