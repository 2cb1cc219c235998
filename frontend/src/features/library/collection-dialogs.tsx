import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import {
  type Collection,
  collectionLabel,
  collectionsQuery,
  deleteCollection,
  isServerFolder,
  moveSources,
  renameCollection,
  type Source,
} from "@/shared/api/library";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { Field, Input } from "@/shared/ui/field";
import { Failure } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import styles from "./collections.module.css";

/** Maximum length of the name of a collection, as the server has it. */
const MAX_NAME_CHARS = 200;

interface RenameDialogProps {
  collection: Collection;
  onClose(): void;
  onRenamed(name: string): void;
}

export function RenameCollectionDialog({ collection, onClose, onRenamed }: RenameDialogProps) {
  const [name, setName] = useState(collection.name);
  const client = useQueryClient();
  const toast = useToast();
  const rename = useMutation({
    mutationFn: () => renameCollection(collection.name, name.trim()),
    onSuccess: (renamed) => {
      for (const key of ["library", "run"]) client.invalidateQueries({ queryKey: [key] });
      toast({ text: t`The collection is now called ${renamed.name}.` });
      onClose();
      onRenamed(renamed.name);
    },
  });
  const handleSubmit = (event: FormEvent) => {
    event.preventDefault();
    rename.mutate();
  };
  return (
    <Dialog open onClose={onClose} title={t`Rename the collection`}>
      <form onSubmit={handleSubmit}>
        <Field
          label={t`Name`}
          description={t`Follow-ups of ended runs that were limited to this collection find its documents under the new name.`}
        >
          {(control) => (
            <Input
              {...control}
              dir="auto"
              maxLength={MAX_NAME_CHARS}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <ProblemNote error={rename.error} />
        <div className="actions">
          <Button onClick={onClose}>
            <Trans>Cancel</Trans>
          </Button>
          <Button
            type="submit"
            kind="primary"
            disabled={rename.isPending || name.trim() === "" || name.trim() === collection.name}
          >
            <Trans>Rename</Trans>
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface DeleteDialogProps {
  collection: Collection;
  onClose(): void;
  onDeleted(): void;
}

export function DeleteCollectionDialog({ collection, onClose, onDeleted }: DeleteDialogProps) {
  const isFolder = isServerFolder(collection.name);
  const [fate, setFate] = useState<"keep" | "erase">(isFolder ? "erase" : "keep");
  const [remaining, setRemaining] = useState<number | null>(null);
  const client = useQueryClient();
  const toast = useToast();
  const label = collectionLabel(collection.name);
  const remove = useMutation({
    mutationFn: async () => {
      let erasedCount = 0;
      for (;;) {
        const part = await deleteCollection(collection.name, fate);
        erasedCount += part.erased.sources;
        if (part.remaining === 0) return { kept: part.kept_count, erased: erasedCount };
        setRemaining(part.remaining);
      }
    },
    onSuccess: ({ kept, erased }) => {
      const text =
        fate === "keep"
          ? plural(kept, { one: "# document is a single file now.", other: "# documents are single files now." })
          : plural(erased, { one: "# document was erased.", other: "# documents were erased." });
      toast({ text });
      onClose();
      onDeleted();
    },
    onSettled: () => {
      for (const key of ["library", "passage", "report", "step"]) client.invalidateQueries({ queryKey: [key] });
    },
  });
  const choice = (value: "keep" | "erase", text: string, note: string) => (
    <label className={styles.choice}>
      <input type="radio" name="documents" checked={fate === value} onChange={() => setFate(value)} />
      <span>
        {text}
        <small className="quiet">{note}</small>
      </span>
    </label>
  );
  return (
    <Dialog open onClose={onClose} title={t`Delete the collection ${label}?`}>
      <p>
        {plural(collection.count, {
          one: "It has # document. What happens to it?",
          other: "It has # documents. What happens to them?",
        })}
      </p>
      <fieldset className={styles.choices} disabled={remove.isPending}>
        <legend className="visually-hidden">
          <Trans>The documents</Trans>
        </legend>
        {!isFolder &&
          choice(
            "keep",
            t`Keep them as single files`,
            t`Searches of the whole library still find them. Follow-ups of runs that were limited to this collection find none of them.`,
          )}
        {choice(
          "erase",
          t`Erase them`,
          t`This removes their stored files, texts and passages, and the copies of their text in the steps of runs. It cannot be undone.`,
        )}
      </fieldset>
      <ProblemNote error={remove.error} />
      {remove.isPending && remaining !== null && (
        <p className="quiet num" role="status">
          {plural(remaining, { one: "# document remains…", other: "# documents remain…" })}
        </p>
      )}
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          {remove.isPending ? t`Deleting…` : t`Delete the collection`}
        </Button>
      </div>
    </Dialog>
  );
}

interface MoveDialogProps {
  sources: readonly Source[];
  onClose(): void;
  onMoved(): void;
}

/** Asks where documents go: to a collection that exists, to a new one, or to the single files. */
export function MoveDialog({ sources, onClose, onMoved }: MoveDialogProps) {
  const [name, setName] = useState("");
  const client = useQueryClient();
  const toast = useToast();
  const collections = useQuery(collectionsQuery);
  const listId = useId();
  const refresh = () => client.invalidateQueries({ queryKey: ["library"] });
  // The dialog is closed by then, so a message says why the documents could not be moved back.
  const moveBack = useMutation({
    mutationFn: () => returnSources(sources),
    onError: (error) => toast({ text: t`The documents were not moved back. ${error.message}` }),
    onSettled: refresh,
  });
  const move = useMutation({
    mutationFn: () =>
      moveSources(
        sources.map(({ id }) => id),
        name.trim(),
      ),
    onSuccess: ({ moved }) => {
      const text = plural(moved, { one: "# document was moved.", other: "# documents were moved." });
      toast({ text, undo: () => moveBack.mutate() });
      onClose();
      onMoved();
    },
    onSettled: refresh,
  });
  const handleSubmit = (event: FormEvent) => {
    event.preventDefault();
    move.mutate();
  };
  const offered = collections.data
    ? collections.data.filter((one) => one.name !== "" && !isServerFolder(one.name))
    : [];
  return (
    <Dialog
      open
      onClose={onClose}
      title={plural(sources.length, { one: "Move # document", other: "Move # documents" })}
    >
      <form onSubmit={handleSubmit}>
        <Field
          label={t`Collection`}
          description={t`A collection that exists or a new one. Leave it empty for single files. Citations stay valid.`}
        >
          {(control) => (
            <Input
              {...control}
              dir="auto"
              list={listId}
              maxLength={MAX_NAME_CHARS}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <datalist id={listId}>
          {offered.map((one) => (
            <option key={one.name} value={one.name} />
          ))}
        </datalist>
        <Failure query={collections} />
        <ProblemNote error={move.error ?? moveBack.error} />
        <div className="actions">
          <Button onClick={onClose}>
            <Trans>Cancel</Trans>
          </Button>
          <Button type="submit" kind="primary" disabled={move.isPending}>
            {name.trim() ? t`Move` : t`Make them single files`}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Move documents back to the collections in which they were. */
async function returnSources(sources: readonly Source[]): Promise<void> {
  for (const name of new Set(sources.map(({ collection }) => collection))) {
    const ids = sources.filter(({ collection }) => collection === name).map(({ id }) => id);
    await moveSources(ids, name);
  }
}
