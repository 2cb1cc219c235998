import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useState } from "react";
import { runStatisticsQuery } from "@/shared/api/asking";
import { ProblemError } from "@/shared/api/client";
import { graphsQuery, tenantQuery } from "@/shared/api/installation";
import type { Run } from "@/shared/api/runs";
import { useCreateRun } from "@/shared/api/use-create-run";
import { useDraft } from "@/shared/ui/drafts";
import { lazyView } from "@/shared/ui/lazy-view";
import { Failure } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { type PickedFolder, readDrop, readField } from "@/shared/upload/read-drop";
import { UploadList } from "@/shared/upload/upload-list";
import { listCollections, listSingleNames, listSourceIds, useUpload } from "@/shared/upload/use-upload";
import { DepthField } from "./depth-field";
import { DocumentsField } from "./documents-field";
import { describeExpectation, expect } from "./expectation";
import { describeLeaving, listDifferences } from "./leaving";
import {
  buildRunRequest,
  describeAttached,
  type FieldErrors,
  findField,
  needsGraphs,
  type QuestionDraft,
  validateDraft,
  validateEngine,
} from "./request";
import { completeSettings, DEFAULT_SETTINGS, type Settings } from "./settings";
import { WhoAnswers } from "./who-answers";
import "./composer.css";

// Both are below the form that is shown first.
const OptionsPanel = lazyView(msg`the options`, async () => (await import("./options-panel")).OptionsPanel);
const QuestionList = lazyView(msg`the list of questions`, async () => (await import("./question-list")).QuestionList);

interface ComposerProps {
  onRunCreated(run: Run): void;
}

/** The question with its documents, depth and options. A reload keeps all of it. */
export function Composer({ onRunCreated }: ComposerProps) {
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
  const statistics = useQuery({ ...runStatisticsQuery, enabled: isInUse });
  const submission = useCreateRun(
    async (draft: QuestionDraft) => {
      const graphs = needsGraphs(draft) ? await client.ensureQueryData(graphsQuery) : [];
      const error = validateEngine(draft, graphs);
      if (error) throw new ProblemError(422, t`The run was not created`, error, t`Model`);
      return buildRunRequest(draft, graphs);
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
  };

  const check = (checked: QuestionDraft): boolean => {
    const found = validateDraft(checked);
    setErrors(found);
    setIsBusyError(busy);
    if (listOptionErrors(found).length > 0) setShowsOptions(true);
    return !busy && Object.keys(found).length === 0;
  };
  const submit = () => {
    if (isList || !check(draft)) return;
    submission.mutate(draft, {
      onError: (error) => {
        if (listOptionErrors(readServerErrors(error)).length > 0) setShowsOptions(true);
      },
    });
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
  const differences = listDifferences(settings);
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
      <UploadList state={upload.state} onClear={upload.clear} />
      <DepthField turns={settings.turns} error={shownErrors.turns} onChange={(turns) => change({ turns })}>
        {statistics.data && describeExpectation(expect(statistics.data.items, settings), settings.turns)}
      </DepthField>
      <Failure query={statistics} />
      <div className="composer-foot">
        <button
          type="button"
          className="btn plain composer-options"
          aria-expanded={showsOptions}
          aria-controls="question-options"
          onClick={() => setShowsOptions(!showsOptions)}
        >
          <Trans>Options</Trans>
        </button>
        <WhoAnswers tenant={tenant} settings={settings} isInUse={isInUse} onChange={change} />
        <span className="composer-differences" dir="auto">
          {differences.join(" · ")}
        </span>
        <label className="composer-several">
          <input type="checkbox" checked={isList} onChange={(event) => setIsList(event.target.checked)} />
          <Trans>Several questions</Trans>
        </label>
        {!isList && (
          <button type="submit" className="btn primary" disabled={submission.isPending}>
            {submission.isPending ? t`Asking…` : t`Ask`}
          </button>
        )}
      </div>
      {showsOptions && (
        <div id="question-options" className="options-frame">
          <OptionsPanel settings={settings} errors={shownErrors} onChange={change} onReplace={setSettings} />
        </div>
      )}
      {isList && (
        <QuestionList
          draft={draft}
          onCheck={check}
          onText={setQuestion}
          onDone={() => {
            setIsList(false);
            setSettings(DEFAULT_SETTINGS);
            upload.clear();
          }}
        />
      )}
      <p className="composer-leaving">{describeLeaving(settings, tenant.data)}</p>
      <p id="composer-error" className="composer-error" role="alert">
        {firstError && describeErrors(firstError, Object.keys(errors).length)}
      </p>
      <ProblemNote error={submission.error} />
    </form>
  );
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
