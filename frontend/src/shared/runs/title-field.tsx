import { t } from "@lingui/core/macro";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Run } from "../api/runs";
import { Input } from "../ui/field";

/** Maximum length of a title, as the server has it. */
const MAX_TITLE_CHARS = 200;

interface TitleFieldProps {
  run: Run;
  onSave(title: string): void;
  onClose(): void;
}

/** The title of a run in place of its name. Enter and leaving the field save it, Escape does not. */
export function TitleField({ run, onSave, onClose }: TitleFieldProps) {
  const [title, setTitle] = useState(run.given_title || run.title || run.question.slice(0, MAX_TITLE_CHARS));
  const field = useRef<HTMLInputElement>(null);
  const isClosed = useRef(false);
  useEffect(() => field.current?.select(), []);
  const close = (isSaved: boolean) => {
    if (isClosed.current) return;
    isClosed.current = true;
    const next = title.trim();
    // A name that was not changed does not become a title.
    if (isSaved && next !== run.given_title && next !== run.question) onSave(next);
    onClose();
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    event.stopPropagation();
    if (event.key === "Enter") close(true);
    if (event.key === "Escape") close(false);
  };
  return (
    <Input
      ref={field}
      dir="auto"
      aria-label={t`Title of the run`}
      placeholder={t`Empty: the title of its report`}
      maxLength={MAX_TITLE_CHARS}
      value={title}
      onChange={(event) => setTitle(event.target.value)}
      onKeyDown={handleKeyDown}
      onBlur={() => close(true)}
    />
  );
}
