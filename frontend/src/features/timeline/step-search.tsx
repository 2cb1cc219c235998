import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useDebounced } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";

interface StepSearchProps {
  /** The text that is searched for. */
  text: string;
  /** Steps that were found, oldest first. `null` means that nothing is searched for. */
  seqs: readonly number[] | null;
  selected: number | null;
  onSearch(text: string): void;
  onSelect(seq: number): void;
  /** Content behind the field. */
  children: ReactNode;
}

const MAX_CHARS = 200;
const DEBOUNCE_MS = 300;

/** A search in the steps of the run. Enter goes to the next match, and Shift+Enter to the previous one. */
export function StepSearch({ text, seqs, selected, onSearch, onSelect, children }: StepSearchProps) {
  const [typed, setTyped] = useState(text);
  const sent = useRef(text);
  const settled = useDebounced(typed, DEBOUNCE_MS);
  // The address changes the field, and the field changes the address when typing pauses.
  useEffect(() => {
    if (text === sent.current) return;
    sent.current = text;
    setTyped(text);
  }, [text]);
  useEffect(() => {
    if (settled.trim() === sent.current) return;
    sent.current = settled.trim();
    onSearch(sent.current);
  }, [settled, onSearch]);

  const input = useRef<HTMLInputElement>(null);
  useHotkeys([{ keys: "f", description: t`Search in the steps`, run: () => input.current?.focus() }]);
  const at = seqs === null || selected === null ? -1 : seqs.indexOf(selected);
  const go = (offset: number) => {
    if (!seqs || seqs.length === 0) return;
    const start = at >= 0 ? at + offset : findStart(seqs, selected, offset);
    const next = seqs[(start + seqs.length) % seqs.length];
    if (next !== undefined) onSelect(next);
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && event.shiftKey) {
      event.preventDefault();
      go(-1);
    } else if (event.key === "Escape" && typed !== "") {
      event.preventDefault();
      setTyped("");
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    go(1);
  };
  const hasText = text !== "" && seqs !== null;
  return (
    <search>
      <form className="timeline-search" onSubmit={submit}>
        <input
          ref={input}
          type="search"
          dir="auto"
          className="field"
          aria-label={t`Search in the steps`}
          placeholder={t`Search in the steps`}
          maxLength={MAX_CHARS}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={handleKeyDown}
        />
        {hasText && seqs.length > 0 && (
          <>
            <button type="button" className="btn small" aria-label={t`Previous match`} onClick={() => go(-1)}>
              ↑
            </button>
            <button type="submit" className="btn small" aria-label={t`Next match`}>
              ↓
            </button>
            {at >= 0 && (
              <span className="num" role="status">
                <Trans>
                  match {at + 1} of {seqs.length}
                </Trans>
              </span>
            )}
          </>
        )}
        {children}
      </form>
    </search>
  );
}

/** Return the index of the match to go to from a step that is no match. */
function findStart(seqs: readonly number[], selected: number | null, offset: number): number {
  if (selected === null) return offset > 0 ? 0 : seqs.length - 1;
  const following = seqs.findIndex((seq) => seq > selected);
  if (offset > 0) return following < 0 ? 0 : following;
  return following < 0 ? seqs.length - 1 : following - 1;
}
