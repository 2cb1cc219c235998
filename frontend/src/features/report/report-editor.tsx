import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ProblemError } from "@/shared/api/client";
import { type Report, reportQuery, saveReport } from "@/shared/api/reports";
import { Button } from "@/shared/ui/button";
import { deleteDraft, storeDraft } from "@/shared/ui/drafts";
import { Field, Input } from "@/shared/ui/field";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useToast } from "@/shared/ui/toast";
import { buildDraft, draftKey, type EditDraft } from "./edit-draft";
import {
  buildEditRequest,
  changeHistory,
  type EditAction,
  editFromReport,
  findProblemKey,
  isChanged,
  listOriginals,
  listSentenceBlocks,
  redo,
  startHistory,
  undo,
} from "./edit-model";
import { AddButtons, EditableText, HeadingRow, SentenceRow } from "./edit-rows";
import { EvidencePicker } from "./evidence-picker";
import styles from "./report-editor.module.css";
import { VersionChanges } from "./version-changes";

interface ReportEditorProps {
  /** The edited version, to which the draft belongs. */
  base: Report;
  /** Unsaved changes of an earlier visit. `null` means that there are none. */
  draft: EditDraft | null;
  /** The edit was saved or discarded. */
  onClose(): void;
  /** The edit is opened again after it was discarded by mistake. */
  onReopen(): void;
}

/** Edits a report sentence by sentence. Unsaved changes survive a reload of the tab. */
export function ReportEditor({ base, draft, onClose, onReopen }: ReportEditorProps) {
  const runId = base.run_id;
  const [history, setHistory] = useState(() => startHistory(draft?.edit ?? editFromReport(base)));
  const [note, setNote] = useState(draft?.note ?? "");
  const [citedKey, setCitedKey] = useState<string | null>(null);
  const originals = useMemo(() => listOriginals(base), [base]);
  const client = useQueryClient();
  const toast = useToast();
  const edit = history.present;
  const keep = (next: typeof history, nextNote = note) => {
    setHistory(next);
    setNote(nextNote);
    storeDraft(draftKey(runId), buildDraft(base.version, next.present, nextNote));
  };
  const change = (action: EditAction) => keep(changeHistory(history, action));
  const save = useMutation({
    mutationFn: (latest: number) => saveReport(runId, buildEditRequest(edit, { base: base.version, latest }, note)),
    onSuccess: async (saved) => {
      deleteDraft(draftKey(runId));
      client.setQueryData(reportQuery(runId, true).queryKey, saved);
      await client.invalidateQueries({ queryKey: ["report", runId] });
      toast({ text: t`Saved as version ${saved.version}.` });
      onClose();
    },
  });
  const discard = () => {
    const stored = buildDraft(base.version, edit, note);
    deleteDraft(draftKey(runId));
    if (changedCount > 0 || history.past.length > 0) {
      toast({
        text: t`Your changes were discarded.`,
        undo: () => {
          storeDraft(draftKey(runId), stored);
          onReopen();
        },
      });
    }
    onClose();
  };
  const isConflict = save.error instanceof ProblemError && save.error.status === 409;
  const problemKey = save.error instanceof ProblemError ? findProblemKey(edit, save.error.field) : null;
  const sentences = listSentenceBlocks(edit);
  const changedCount = sentences.filter((block) => isChanged(block, originals)).length;
  const quotes = useMemo(() => new Map(base.citations.map((citation) => [citation.number, citation])), [base]);
  const position = new Map(sentences.map((block, at) => [block.key, at + 1]));
  const rowProps = { quotes, originals, onChange: change, onCite: setCitedKey, problemKey };
  return (
    <section className={styles.editor} aria-label={t`Edit the report`}>
      <EditableText
        label={t`Title of the report`}
        className={styles.title}
        value={edit.title}
        onChange={(text) => change({ type: "title", text })}
      />
      <ul className={styles.blocks} aria-label={t`Sentences of the report`}>
        {edit.answer && <SentenceRow block={edit.answer} number={1} isAnswer {...rowProps} />}
        {edit.blocks.map((block) =>
          block.kind === "heading" ? (
            <HeadingRow key={block.key} block={block} onChange={change} />
          ) : (
            <SentenceRow key={block.key} block={block} number={position.get(block.key) ?? 0} {...rowProps} />
          ),
        )}
      </ul>
      <AddButtons after={edit.blocks.at(-1)?.key ?? null} onChange={change} />
      <Field label={t`What the report could not establish`}>
        {(control) => (
          <EditableText
            {...control}
            label=""
            value={edit.limitations}
            onChange={(text) => change({ type: "limitations", text })}
          />
        )}
      </Field>
      <div className={styles.bar}>
        {save.error && !isConflict && <ProblemNote error={save.error} />}
        {isConflict && (
          <Conflict
            base={base}
            error={save.error}
            isSaving={save.isPending}
            onSaveOnTop={(latest) => save.mutate(latest)}
          />
        )}
        <p role="status" className="quiet">
          {changedCount > 0
            ? plural(changedCount, {
                one: "# sentence is new or changed. Rules check it when you save.",
                other: "# sentences are new or changed. Rules check them when you save.",
              })
            : t`Changed sentences are checked by rules when you save, and marked as edited.`}
        </p>
        <div className={styles.save}>
          <Input
            dir="auto"
            aria-label={t`Note about this version`}
            placeholder={t`Note about this version (optional)`}
            maxLength={500}
            value={note}
            onChange={(event) => keep(history, event.target.value)}
          />
          <Button disabled={history.past.length === 0} onClick={() => keep(undo(history))}>
            <Trans>Undo</Trans>
          </Button>
          <Button disabled={history.future.length === 0} onClick={() => keep(redo(history))}>
            <Trans>Redo</Trans>
          </Button>
          <Button onClick={discard}>
            <Trans>Discard</Trans>
          </Button>
          <Button kind="primary" disabled={save.isPending} onClick={() => save.mutate(base.version)}>
            {save.isPending ? t`Saving…` : t`Save as a new version`}
          </Button>
        </div>
      </div>
      <EvidencePicker
        runId={runId}
        open={citedKey !== null}
        onClose={() => setCitedKey(null)}
        onCite={(citation) => {
          if (citedKey !== null) keep(changeHistory(history, { type: "cite", key: citedKey, citation }));
          setCitedKey(null);
        }}
      />
    </section>
  );
}

interface ConflictProps {
  base: Report;
  error: unknown;
  isSaving: boolean;
  onSaveOnTop(latest: number): void;
}

/** Someone has saved another version in the meantime. Both are kept: the person sees theirs, and saves on top of it. */
function Conflict({ base, error, isSaving, onSaveOnTop }: ConflictProps) {
  const client = useQueryClient();
  const [latest, setLatest] = useState<number | null>(null);
  const look = useMutation({
    mutationFn: () => client.fetchQuery({ ...reportQuery(base.run_id, true), staleTime: 0 }),
    onSuccess: (report) => setLatest(report?.latest_version ?? null),
  });
  return (
    <div className="notice sun">
      <b>
        <Trans>Another version was saved in the meantime.</Trans>
      </b>
      <p>{error instanceof Error && error.message}</p>
      <p>
        <Trans>
          Your changes are kept here and in this tab. Saving them on top keeps the other version in the list.
        </Trans>
      </p>
      {latest === null ? (
        <Button small disabled={look.isPending} onClick={() => look.mutate()}>
          <Trans>Show what the other version changed</Trans>
        </Button>
      ) : (
        <>
          <VersionChanges runId={base.run_id} old={base.version} next={latest} />
          <Button small disabled={isSaving} onClick={() => onSaveOnTop(latest)}>
            <Trans>Save mine as version {latest + 1}</Trans>
          </Button>
        </>
      )}
      <ProblemNote error={look.error} />
    </div>
  );
}
