import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { type Run, tagsQuery } from "../api/runs";
import { Button, IconButton } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Field, Input } from "../ui/field";
import { Failure } from "../ui/loaded";
import styles from "./runs.module.css";
import type { Organize } from "./use-organize";

const MAX_TAG_CHARS = 50;

interface TagsDialogProps {
  runs: readonly Run[];
  organize: Organize;
  onClose(): void;
}

/** The tags of one or several runs: add and remove them. Tags of other runs are suggested. */
export function TagsDialog({ runs, organize, onClose }: TagsDialogProps) {
  const [added, setAdded] = useState<readonly string[]>([]);
  const [removed, setRemoved] = useState<readonly string[]>([]);
  const [text, setText] = useState("");
  const known = useQuery(tagsQuery);
  const listId = useId();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const counts = countTags(runs);
  const shown = [...new Set([...counts.keys(), ...added])].filter((tag) => !removed.includes(tag));
  const suggested = known.data ? known.data.items.filter((tag) => !added.includes(tag)) : [];

  const add = (raw: string) => {
    const tag = raw.trim();
    setText("");
    if (!tag) return [...added];
    setRemoved(removed.filter((other) => other !== tag));
    const next = added.includes(tag) ? [...added] : [...added, tag];
    setAdded(next);
    return next;
  };
  const remove = (tag: string) => {
    setAdded(added.filter((other) => other !== tag));
    if (counts.has(tag)) setRemoved([...removed, tag]);
    // The button that had the focus disappears with its tag.
    field.current?.focus();
  };
  const handleSubmit = (event: FormEvent) => {
    event.preventDefault();
    add(text);
  };
  const save = () => {
    const all = add(text);
    const dropped = removed.filter((tag) => !all.includes(tag));
    if (all.length > 0 || dropped.length > 0) organize.tag(runs, all, dropped);
    onClose();
  };
  return (
    <Dialog open onClose={onClose} title={plural(runs.length, { one: "Tags of the run", other: "Tags of # runs" })}>
      <ul className={styles.tags} aria-label={t`Tags`}>
        {shown.map((tag) => {
          const count = added.includes(tag) ? runs.length : (counts.get(tag) ?? 0);
          return (
            <li key={tag} className={styles.chip}>
              <span dir="auto">{tag}</span>
              {count < runs.length && (
                <span className="quiet num">
                  <Trans>
                    {count} of {runs.length}
                  </Trans>
                </span>
              )}
              <IconButton small label={t`Remove the tag ${tag}`} onClick={() => remove(tag)}>
                ×
              </IconButton>
            </li>
          );
        })}
      </ul>
      <form onSubmit={handleSubmit}>
        <Field label={t`Add a tag`} description={t`At most 20 tags per run.`}>
          {(control) => (
            <span className={styles.addTag}>
              <Input
                {...control}
                ref={field}
                dir="auto"
                list={listId}
                maxLength={MAX_TAG_CHARS}
                value={text}
                onChange={(event) => setText(event.target.value)}
              />
              <Button type="submit" disabled={text.trim() === ""}>
                <Trans>Add</Trans>
              </Button>
            </span>
          )}
        </Field>
        <datalist id={listId}>
          {suggested.map((tag) => (
            <option key={tag} value={tag} />
          ))}
        </datalist>
      </form>
      <Failure query={known} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
        <Button kind="primary" onClick={save}>
          <Trans>Save the tags</Trans>
        </Button>
      </div>
    </Dialog>
  );
}

/** Return how many of the runs have each tag. */
function countTags(runs: readonly Run[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const tag of runs.flatMap((run) => run.tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return counts;
}
