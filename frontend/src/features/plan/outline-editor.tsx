import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type KeyboardEvent, useRef } from "react";
import type { PlanItem, RunPlan } from "@/shared/api/run-views";
import { Button } from "@/shared/ui/button";
import { ProblemNote } from "@/shared/ui/problem-note";
import {
  addItem,
  changeItem,
  type DraftItem,
  type DraftProblem,
  findProblem,
  MAX_ITEM_CHARS,
  MAX_ITEMS,
  moveItem,
  type OutlineDraft,
  removeItem,
} from "./outline-draft";
import styles from "./plan-outline.module.css";

interface OutlineEditorProps {
  plan: RunPlan;
  draft: OutlineDraft;
  isSending: boolean;
  error: unknown;
  onChange(draft: OutlineDraft): void;
  onSend(): void;
  onDiscard(): void;
}

/** Edits the parts of the question: add, change, remove, reorder, and mark as must be answered. */
export function OutlineEditor({ plan, draft, isSending, error, onChange, onSend, onDiscard }: OutlineEditorProps) {
  const list = useRef<HTMLOListElement>(null);
  const problem = findProblem(draft, plan);
  const isOutdated = draft.version !== plan.version;
  const focusAt = (at: number) => requestAnimationFrame(() => list.current?.querySelectorAll("textarea")[at]?.focus());
  const insert = () => {
    onChange(addItem(draft));
    focusAt(draft.items.length);
  };
  const remove = (id: number, at: number) => {
    onChange(removeItem(draft, id));
    focusAt(Math.max(0, at - 1));
  };
  return (
    <form
      className={styles.editor}
      aria-label={t`Edit the plan`}
      onSubmit={(event) => {
        event.preventDefault();
        if (!problem && !isOutdated) onSend();
      }}
    >
      {isOutdated && <OutdatedNote plan={plan} onKeep={() => onChange({ ...draft, version: plan.version })} />}
      <ol ref={list} className={styles.edits}>
        {draft.items.map((item, at) => (
          <ItemEditor
            key={item.id}
            item={item}
            number={at + 1}
            count={draft.items.length}
            onChange={(part) => onChange(changeItem(draft, item.id, part))}
            onMove={(offset) => onChange(moveItem(draft, item.id, offset))}
            onRemove={() => remove(item.id, at)}
            onEnter={insert}
          />
        ))}
      </ol>
      <div className={styles.actions}>
        <Button small disabled={draft.items.length >= MAX_ITEMS} onClick={insert}>
          <Trans>Add a part</Trans>
        </Button>
        <Button small kind="plain" onClick={onDiscard}>
          <Trans>Discard</Trans>
        </Button>
        <Button small kind="primary" type="submit" disabled={isSending || isOutdated || problem !== null}>
          {isSending ? t`Sending…` : t`Send the change`}
        </Button>
      </div>
      {problem && problem !== "unchanged" && <p className={styles.problem}>{i18n._(PROBLEMS[problem])}</p>}
      <ProblemNote error={error} />
    </form>
  );
}

const PROBLEMS: Record<DraftProblem, MessageDescriptor> = {
  empty: msg`Keep at least one part.`,
  repeated: msg`Two parts have the same text. Remove one of them.`,
  unchanged: msg`Nothing is changed yet.`,
};

function OutdatedNote({ plan, onKeep }: { plan: RunPlan; onKeep(): void }) {
  return (
    <div className={styles.outdated} role="status">
      <p>
        <Trans>The plan has changed since you began to edit. It is now:</Trans>
      </p>
      <ol>
        {plan.items.map(({ text }) => (
          <li key={text} dir="auto">
            {text}
          </li>
        ))}
      </ol>
      <Button small onClick={onKeep}>
        <Trans>Replace it with my edits</Trans>
      </Button>
    </div>
  );
}

interface ItemEditorProps {
  item: DraftItem;
  number: number;
  count: number;
  onChange(part: Partial<PlanItem>): void;
  onMove(offset: number): void;
  onRemove(): void;
  onEnter(): void;
}

function ItemEditor({ item, number, count, onChange, onMove, onRemove, onEnter }: ItemEditorProps) {
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      onMove(event.key === "ArrowUp" ? -1 : 1);
    } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      onEnter();
    }
  };
  return (
    <li>
      <textarea
        dir="auto"
        className="field"
        rows={2}
        maxLength={MAX_ITEM_CHARS}
        aria-label={t`Part ${number}`}
        value={item.text}
        onChange={(event) => onChange({ text: event.target.value })}
        onKeyDown={handleKeyDown}
      />
      <span className={styles.tools}>
        <label>
          <input
            type="checkbox"
            checked={item.must_answer}
            onChange={(event) => onChange({ must_answer: event.target.checked })}
          />
          <Trans>must be answered</Trans>
        </label>
        <button type="button" aria-label={t`Move part ${number} up`} disabled={number === 1} onClick={() => onMove(-1)}>
          ↑
        </button>
        <button
          type="button"
          aria-label={t`Move part ${number} down`}
          disabled={number === count}
          onClick={() => onMove(1)}
        >
          ↓
        </button>
        <button type="button" aria-label={t`Remove part ${number}`} onClick={onRemove}>
          ×
        </button>
      </span>
    </li>
  );
}
