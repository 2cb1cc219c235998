import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type ReactNode, useState } from "react";
import { ProblemError } from "@/shared/api/client";
import { tenantQuery } from "@/shared/api/installation";
import type { Run } from "@/shared/api/runs";
import { useCreateRun } from "@/shared/api/use-create-run";
import { useDraft } from "@/shared/ui/drafts";
import { lazyView } from "@/shared/ui/lazy-view";
import { ProblemNote } from "@/shared/ui/problem-note";
import { type PickedFolder, readDrop, readField } from "@/shared/upload/read-drop";
import type { UploadState } from "@/shared/upload/upload";
import { listCollections, listSingleNames, listSourceIds, useUpload } from "@/shared/upload/use-upload";
import { DepthField } from "./depth-field";
import { listDifferences } from "./differences";
import { DocumentsField } from "./documents-field";
import { buildRunRequest, describeAttached, type QuestionDraft } from "./request";
import { completeSettings, DEFAULT_SETTINGS, type Settings } from "./settings";
import { type FieldErrors, findField, validateDraft } from "./validation";
import { WhoAnswers } from "./who-answers";
import "./composer.css";

// Parts of the form that are not shown first.
const ComposerNotes = lazyView(msg`the notes`, async () => (await import("./composer-notes")).ComposerNotes);
const UploadList = lazyView(msg`the added files`, async () => (await import("@/shared/upload/upload-list")).UploadList);
const OptionsPanel = lazyView(msg`the options`, async () => (await import("./options-panel")).OptionsPanel);
const QuestionList = lazyView(msg`the list of questions`, async () => (await import("./question-list")).QuestionList);

interface ComposerProps {
  /** Id of a saved way to ask that is applied. `null` means none. */
  preset: string | null;
  onPresetApplied(): void;
  onRunCreated(run: Run): void;
}

/** The question with its documents, depth and options. A reload keeps all of it. */
export function Composer({ preset, onPresetApplied, onRunCreated }: ComposerProps) {
  const client = useQueryClient();
  const [question, setQuestion] = useDraft("question", "");
  const [stored, setSettings] = useDraft("question.settings", DEFAULT_SETTINGS);
  const [isList, setIsList] = useDraft("question.several", false);
  const [showsOptions, setShowsOptions] = useState(false);
  const [errors, setErrors] = useState<FieldErrors>({});
  const [isBusyError, setIsBusyError] = useState(false);
  const [isDragOver, setIsDragOver] = useState(false);
  // The first view makes one request. What the form needs beyond it is loaded when the person begins to use it.
  const [isInUse, setIsInUse] = useState(question !== "");
  const upload = useUpload("question.documents");
  const settings = completeSettings(stored);
  const tenant = useQuery(tenantQuery);
  const submission = useCreateRun(
    async (draft: QuestionDraft) => {
      const { loadRequestParts } = await import("./request-parts");
      return buildRunRequest(draft, await loadRequestParts(client, draft));
    },
    (run) => {
      setQuestion("");
      setSettings(DEFAULT_SETTINGS);
      upload.clear();
      onRunCreated(run);
    },
  );
  const { results, busy } = upload.state;
  const attached = {
    sources: listSourceIds(results),
    attachedTo: listCollections(results),
    singles: listSingleNames(results),
  };
  const draft: QuestionDraft = { ...settings, ...attached, question };
  const shownErrors: FieldErrors = { ...errors, ...readServerErrors(submission.error) };
  const change = (part: Partial<Settings>) => {
    setSettings({ ...settings, ...part });
    setErrors({});
    // What was rejected is no longer what would be sent.
    if (submission.isError) submission.reset();
  };
  const openOptions = (found: FieldErrors) => {
    if (listOptionErrors(found).length > 0) setShowsOptions(true);
  };

  const check = (checked: QuestionDraft): boolean => {
    const found = validateDraft(checked);
    setErrors(found);
    setIsBusyError(busy);
    openOptions(found);
    return !busy && Object.keys(found).length === 0;
  };
  const submit = () => {
    if (isList || !check(draft)) return;
    submission.mutate(draft, { onError: (error) => openOptions(readServerErrors(error)) });
  };
  const uploadPicked = (picked: PickedFolder[] | Promise<PickedFolder[]>) => upload.send(picked, "");
  const handleDrop = (event: DragEvent) => {
    setIsDragOver(false);
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    uploadPicked(readDrop(event.dataTransfer));
  };
  const handlePaste = (event: ClipboardEvent) => {
    // Office programs add a picture to a copied text, which is meant to be pasted as text.
    if (event.clipboardData.files.length === 0 || event.clipboardData.types.includes("text/html")) return;
    event.preventDefault();
    uploadPicked(readField(event.clipboardData.files));
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit();
  };
  const isOpen = showsOptions || preset !== null;
  const firstError = isBusyError ? t`Wait until the documents are processed.` : Object.values(errors)[0];

  return (
    <form
      className={isDragOver ? "composer drag-over" : "composer"}
      aria-label={t`New question`}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onFocus={() => setIsInUse(true)}
      onDragOver={(event) => {
        event.preventDefault();
        setIsDragOver(true);
      }}
      onDragLeave={() => setIsDragOver(false)}
      onDrop={handleDrop}
      onPaste={handlePaste}
    >
      <label className="visually-hidden" htmlFor="question">
        {isList ? <Trans>Questions, one per line</Trans> : <Trans>Question</Trans>}
      </label>
      <textarea
        dir="auto"
        id="question"
        className="composer-question"
        rows={isList ? 5 : 3}
        value={question}
        placeholder={isList ? t`One question per line. Each becomes a run.` : t`Ask a question that takes research`}
        aria-invalid={shownErrors.question !== undefined}
        aria-describedby="composer-error"
        onChange={(event) => {
          setQuestion(event.target.value);
          setErrors({});
        }}
        onKeyDown={handleKeyDown}
      />
      <DocumentsField
        selected={settings.collections}
        attached={describeAttached(attached)}
        web={settings.web}
        onWeb={(web) => change({ web })}
        onPick={uploadPicked}
      />
      {hasUploads(upload.state) && <UploadList state={upload.state} onClear={upload.clear} />}
      <DepthField turns={settings.turns} error={shownErrors.turns} onChange={(turns) => change({ turns })} />
      <ComposerFoot
        differences={listDifferences(settings)}
        isOpen={isOpen}
        isList={isList}
        isPending={submission.isPending}
        onOpen={setShowsOptions}
        onList={setIsList}
      >
        <WhoAnswers tenant={tenant} settings={settings} isInUse={isInUse} onChange={change} />
      </ComposerFoot>
      {isOpen && (
        <div id="question-options" className="options-frame">
          <OptionsPanel
            settings={settings}
            errors={shownErrors}
            hasAttached={describeAttached(attached) !== null}
            preset={preset}
            onChange={change}
            onReplace={setSettings}
            onPresetApplied={() => {
              setShowsOptions(true);
              onPresetApplied();
            }}
          />
        </div>
      )}
      {isList && (
        <QuestionList
          draft={draft}
          onCheck={check}
          onProblem={(error) => {
            const found = readServerErrors(error);
            setErrors(found);
            openOptions(found);
          }}
          onText={setQuestion}
          onDone={() => {
            setIsList(false);
            setSettings(DEFAULT_SETTINGS);
            upload.clear();
          }}
        />
      )}
      <div className="composer-notes">
        <ComposerNotes settings={settings} defaults={tenant.data} isInUse={isInUse} />
      </div>
      <p id="composer-error" className="composer-error" role="alert">
        {firstError && describeErrors(firstError, Object.keys(errors).length)}
      </p>
      <ProblemNote error={submission.error} />
    </form>
  );
}

interface ComposerFootProps {
  /** What differs from the defaults, in a few words each. */
  differences: readonly string[];
  isOpen: boolean;
  isList: boolean;
  isPending: boolean;
  onOpen(isOpen: boolean): void;
  onList(isList: boolean): void;
  /** Who answers the question. */
  children: ReactNode;
}

/** The way to the options, to several questions, and the button that asks a single one. */
function ComposerFoot({ differences, isOpen, isList, isPending, onOpen, onList, children }: ComposerFootProps) {
  return (
    <div className="composer-foot">
      <button
        type="button"
        className="btn plain composer-options"
        aria-expanded={isOpen}
        aria-controls="question-options"
        onClick={() => onOpen(!isOpen)}
      >
        <Trans>Options</Trans>
      </button>
      {children}
      <span className="composer-differences" dir="auto">
        {differences.join(" · ")}
      </span>
      <label className="composer-several">
        <input type="checkbox" checked={isList} onChange={(event) => onList(event.target.checked)} />
        <Trans>Several questions</Trans>
      </label>
      {!isList && (
        <button type="submit" className="btn primary" disabled={isPending}>
          {isPending ? t`Asking…` : t`Ask`}
        </button>
      )}
    </div>
  );
}

/** Return whether there is something to say about added files. */
function hasUploads({ total, unsent, error, hasNoReadableFiles }: UploadState): boolean {
  return total > 0 || unsent > 0 || Boolean(error) || hasNoReadableFiles;
}

function describeErrors(first: string, count: number): string {
  if (count < 2) return first;
  return plural(count - 1, {
    one: `${first} # other field is invalid.`,
    other: `${first} # other fields are invalid.`,
  });
}

/** Return the error of the field of the form that the server rejected. */
function readServerErrors(error: unknown): FieldErrors {
  const field = error instanceof ProblemError ? findField(error.field) : null;
  return field && error instanceof ProblemError ? { [field]: error.detail } : {};
}

/** Return the fields with an error that are among the options. */
function listOptionErrors(errors: FieldErrors): string[] {
  return Object.keys(errors).filter((field) => !["question", "documents", "turns"].includes(field));
}
