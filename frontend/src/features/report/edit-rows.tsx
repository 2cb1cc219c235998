/** The rows of the editor: one per heading and sentence. */

import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { KeyboardEvent, TextareaHTMLAttributes } from "react";
import type { Citation } from "@/shared/api/reports";
import { Button, IconButton } from "@/shared/ui/button";
import { classNames } from "@/shared/ui/class-names";
import { Select } from "@/shared/ui/field";
import { Menu } from "@/shared/ui/menu";
import {
  type EditAction,
  type EditCitation,
  type HeadingBlock,
  isChanged,
  type Layout,
  newBlockKey,
  type SentenceBlock,
} from "./edit-model";
import styles from "./report-editor.module.css";

const LAYOUTS = [
  { layout: "statement", label: msg`Sentence that stands alone` },
  { layout: "paragraph", label: msg`Begins a paragraph` },
  { layout: "continued", label: msg`Continues the paragraph` },
  { layout: "item", label: msg`Item of a list` },
  { layout: "header", label: msg`Header of a table` },
  { layout: "row", label: msg`Row of a table` },
] as const;

interface EditableTextProps extends Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "value" | "onChange"> {
  /** Accessible name. Empty if a visible label names the field. */
  label: string;
  value: string;
  onChange(text: string): void;
}

const CHARS_PER_LINE = 62;

/** A text that grows with its content. */
export function EditableText({ label, value, onChange, className, ...rest }: EditableTextProps) {
  const rows = value.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / CHARS_PER_LINE)), 0);
  return (
    <textarea
      dir="auto"
      aria-label={label || undefined}
      className={classNames(styles.text, className)}
      rows={rows}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      {...rest}
    />
  );
}

interface RowProps {
  /** Citations of the edited version by number. */
  quotes: ReadonlyMap<number, Citation>;
  originals: ReadonlyMap<string, SentenceBlock>;
  /** Block that the server has rejected. `null` means none. */
  problemKey: string | null;
  onChange(action: EditAction): void;
  /** Opens the choice of a passage for a sentence. */
  onCite(key: string): void;
}

interface SentenceRowProps extends RowProps {
  block: SentenceBlock;
  /** Position among the sentences, from 1. */
  number: number;
  isAnswer?: boolean;
}

export function SentenceRow({ block, number, isAnswer = false, ...props }: SentenceRowProps) {
  const { originals, problemKey, onChange, onCite } = props;
  const name = isAnswer ? t`Short answer` : t`Sentence ${number}`;
  const changed = isChanged(block, originals);
  return (
    <li className={classNames(styles.row, changed && styles.changed)}>
      <EditableText
        id={`edit-${block.key}`}
        label={name}
        className={isAnswer ? styles.answer : undefined}
        aria-invalid={problemKey === block.key}
        aria-describedby={`edit-keys-${block.key}`}
        value={block.text}
        onChange={(text) => onChange({ type: "text", key: block.key, text: text.replace(/\n/g, " ") })}
        onKeyDown={(event) => handleKey(event, block, isAnswer, onChange)}
      />
      <span id={`edit-keys-${block.key}`} className="visually-hidden">
        <Trans>Enter splits the sentence, Backspace at its start joins it, Alt with an arrow key moves it.</Trans>
      </span>
      <div className={styles.tools}>
        <Citations block={block} name={name} {...props} />
        <Button small kind="plain" aria-label={t`Cite a passage in: ${name}`} onClick={() => onCite(block.key)}>
          <Trans>+ Cite</Trans>
        </Button>
        {changed && <small className={styles.mark}>{block.id === null ? t`new` : t`changed`}</small>}
        <span className={styles.end}>
          {!isAnswer && (
            <>
              <Select
                aria-label={t`Form of: ${name}`}
                className={styles.layout}
                value={block.layout}
                onChange={(event) => onChange({ type: "layout", key: block.key, layout: event.target.value as Layout })}
              >
                {LAYOUTS.map(({ layout, label }) => (
                  <option key={layout} value={layout}>
                    {i18n._(label)}
                  </option>
                ))}
              </Select>
              <MoveButtons name={name} blockKey={block.key} onChange={onChange} />
              <IconButton
                small
                label={t`Add a sentence after: ${name}`}
                onClick={() => onChange({ type: "add", kind: "sentence", after: block.key, key: newBlockKey() })}
              >
                +
              </IconButton>
            </>
          )}
          <IconButton small label={t`Delete: ${name}`} onClick={() => onChange({ type: "remove", key: block.key })}>
            ×
          </IconButton>
        </span>
      </div>
    </li>
  );
}

function handleKey(
  event: KeyboardEvent<HTMLTextAreaElement>,
  block: SentenceBlock,
  isAnswer: boolean,
  onChange: (action: EditAction) => void,
): void {
  if (isAnswer || event.nativeEvent.isComposing) return;
  const { selectionStart, selectionEnd } = event.currentTarget;
  const isAtStart = selectionStart === 0 && selectionEnd === 0;
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    const newKey = newBlockKey();
    onChange({ type: "split", key: block.key, at: selectionStart, newKey });
    focusBlock(newKey);
  } else if (event.key === "Backspace" && isAtStart) {
    event.preventDefault();
    onChange({ type: "join", key: block.key });
  } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    onChange({ type: "move", key: block.key, by: event.key === "ArrowUp" ? -1 : 1 });
    focusBlock(block.key);
  }
}

/** Focus the text of a block after it was rendered. */
function focusBlock(key: string): void {
  setTimeout(() => document.getElementById(`edit-${key}`)?.focus());
}

/** The citations of a sentence as tokens. They can be moved and removed, and their numbers cannot be typed. */
function Citations({ block, name, quotes, onChange }: { block: SentenceBlock; name: string } & RowProps) {
  return block.citations.map((citation, at) => {
    const { label, title } = describeCitation(citation, quotes);
    const move = (by: -1 | 1) => onChange({ type: "moveCitation", key: block.key, at, by });
    return (
      <span key={`${label}${title}`} title={title} dir="auto">
        <Menu
          label={label}
          name={t`Citation ${label} of: ${name}`}
          className="cite"
          items={[
            {
              name: t`Move back`,
              description: t`to the sentence before from the first place`,
              onAction: () => move(-1),
            },
            { name: t`Move on`, description: t`to the next sentence from the last place`, onAction: () => move(1) },
            {
              name: t`Remove`,
              description: title.slice(0, 120),
              onAction: () => onChange({ type: "uncite", key: block.key, at }),
            },
          ]}
        />
      </span>
    );
  });
}

function describeCitation(citation: EditCitation, quotes: RowProps["quotes"]): { label: string; title: string } {
  if (citation.kind === "new") return { label: t`new`, title: `${citation.title}: “${citation.quote}”` };
  const known = quotes.get(citation.number);
  return { label: String(citation.number), title: known ? `${known.title}: “${known.quote}”` : "" };
}

interface HeadingRowProps {
  block: HeadingBlock;
  onChange(action: EditAction): void;
}

export function HeadingRow({ block, onChange }: HeadingRowProps) {
  const name = block.text || t`Section without a heading`;
  return (
    <li className={classNames(styles.row, styles.headingRow)}>
      <EditableText
        id={`edit-${block.key}`}
        label={t`Heading`}
        placeholder={t`Section without a heading`}
        className={styles.heading}
        value={block.text}
        onChange={(text) => onChange({ type: "text", key: block.key, text: text.replace(/\n/g, " ") })}
      />
      <div className={styles.tools}>
        <span className={styles.end}>
          <MoveButtons name={name} blockKey={block.key} onChange={onChange} />
          <IconButton
            small
            label={t`Add a sentence after: ${name}`}
            onClick={() => onChange({ type: "add", kind: "sentence", after: block.key, key: newBlockKey() })}
          >
            +
          </IconButton>
          <IconButton
            small
            label={t`Delete the heading, not its sentences: ${name}`}
            onClick={() => onChange({ type: "remove", key: block.key })}
          >
            ×
          </IconButton>
        </span>
      </div>
    </li>
  );
}

interface MoveButtonsProps {
  name: string;
  blockKey: string;
  onChange(action: EditAction): void;
}

function MoveButtons({ name, blockKey, onChange }: MoveButtonsProps) {
  return (
    <>
      <IconButton small label={t`Move up: ${name}`} onClick={() => onChange({ type: "move", key: blockKey, by: -1 })}>
        ↑
      </IconButton>
      <IconButton small label={t`Move down: ${name}`} onClick={() => onChange({ type: "move", key: blockKey, by: 1 })}>
        ↓
      </IconButton>
    </>
  );
}

interface AddButtonsProps {
  after: string | null;
  onChange(action: EditAction): void;
}

/** Adds a block at the end. */
export function AddButtons({ after, onChange }: AddButtonsProps) {
  const add = (kind: "sentence" | "heading") => {
    const key = newBlockKey();
    onChange({ type: "add", kind, after, key });
    focusBlock(key);
  };
  return (
    <p className={styles.add}>
      <Button small onClick={() => add("sentence")}>
        <Trans>Add a sentence</Trans>
      </Button>
      <Button small onClick={() => add("heading")}>
        <Trans>Add a section</Trans>
      </Button>
    </p>
  );
}
