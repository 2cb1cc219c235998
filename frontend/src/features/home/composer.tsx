import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type DragEvent, type KeyboardEvent, useState } from "react";
import { ProblemError } from "@/shared/api/client";
import { enginesQuery, graphsQuery, mcpServersQuery } from "@/shared/api/installation";
import { collectionsQuery } from "@/shared/api/library";
import type { Run } from "@/shared/api/runs";
import { useCreateRun } from "@/shared/api/use-create-run";
import { useDraft } from "@/shared/ui/drafts";
import { ProblemNote } from "@/shared/ui/problem-note";
import { type PickedFolder, readDrop } from "@/shared/upload/read-drop";
import { UploadList } from "@/shared/upload/upload-list";
import { listCollections, listSingleNames, listSourceIds, useUpload } from "@/shared/upload/use-upload";
import { BudgetField } from "./budget-field";
import { DocumentsField } from "./documents-field";
import { buildRunRequest, describeAttached, type QuestionDraft, validateDraft, validateEngine } from "./request";
import { TurnBudgetField } from "./turn-budget-field";
import "./composer.css";

interface ComposerProps {
  onRunCreated(run: Run): void;
}

type Settings = Omit<QuestionDraft, "question" | "sources" | "attachedTo" | "singles">;

const DEFAULT_SETTINGS: Settings = {
  turns: 12,
  usd: "",
  minutes: "",
  graph: "agentflow",
  engine: "",
  collections: [],
  web: false,
  code: false,
  mcp: [],
};

/** The question with its documents, budget and engine. A reload keeps all of it. */
export function Composer({ onRunCreated }: ComposerProps) {
  const [question, setQuestion] = useDraft("question", "");
  const [settings, setSettings] = useDraft("question.settings", DEFAULT_SETTINGS);
  const [validationError, setValidationError] = useState<string | null>(null);
  const [isDragOver, setIsDragOver] = useState(false);
  const upload = useUpload("question.documents");
  const graphs = useQuery(graphsQuery);
  const engines = useQuery(enginesQuery);
  const collections = useQuery(collectionsQuery);
  const servers = useQuery(mcpServersQuery);
  const submission = useSubmitQuestion((run) => {
    setQuestion("");
    setSettings(DEFAULT_SETTINGS);
    upload.clear();
    onRunCreated(run);
  });
  const { results, busy } = upload.state;
  const attached = {
    sources: listSourceIds(results),
    attachedTo: listCollections(results),
    singles: listSingleNames(results),
  };
  const change = (part: Partial<Settings>) => setSettings({ ...settings, ...part });

  const submit = () => {
    const draft = { ...settings, ...attached, question };
    const error = busy ? t`Wait until the documents are processed.` : validateDraft(draft);
    setValidationError(error);
    if (!error) submission.mutate(draft);
  };
  const uploadPicked = (picked: PickedFolder[] | Promise<PickedFolder[]>) => upload.send(picked, "");
  const handleDrop = (event: DragEvent) => {
    setIsDragOver(false);
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    uploadPicked(readDrop(event.dataTransfer));
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit();
  };

  return (
    <form
      className={isDragOver ? "composer drag-over" : "composer"}
      aria-label={t`New question`}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setIsDragOver(true);
      }}
      onDragLeave={() => setIsDragOver(false)}
      onDrop={handleDrop}
    >
      <label className="visually-hidden" htmlFor="question">
        <Trans>Question</Trans>
      </label>
      <textarea
        dir="auto"
        id="question"
        className="composer-question"
        rows={3}
        value={question}
        placeholder={t`Ask a question that takes research`}
        aria-invalid={validationError !== null}
        aria-describedby="composer-error"
        onChange={(event) => setQuestion(event.target.value)}
        onKeyDown={handleKeyDown}
      />
      <DocumentsField
        collections={collections}
        selected={settings.collections}
        attached={describeAttached(attached)}
        web={settings.web}
        onSelect={(chosen) => change({ collections: chosen })}
        onWeb={(web) => change({ web })}
        code={settings.code}
        onCode={(code) => change({ code })}
        servers={servers}
        mcp={settings.mcp}
        onMcp={(mcp) => change({ mcp })}
        onPick={uploadPicked}
      />
      <UploadList state={upload.state} onClear={upload.clear} />
      <div className="composer-foot">
        <TurnBudgetField turns={settings.turns} onChange={(turns) => change({ turns })} />
        <BudgetField settings={settings} graphs={graphs} engines={engines} onChange={change} />
        <button type="submit" className="btn primary" disabled={submission.isPending}>
          {submission.isPending ? t`Asking…` : t`Ask`}
        </button>
      </div>
      <p id="composer-error" className="composer-error" role="alert">
        {validationError}
      </p>
      <ProblemNote error={submission.error} />
    </form>
  );
}

/**
 * A selected engine answers every role of the graph, so the list of graphs must be loaded first. Without the list, no
 * run is created.
 */
function useSubmitQuestion(onRunCreated: (run: Run) => void) {
  const client = useQueryClient();
  return useCreateRun(async (draft: QuestionDraft) => {
    const graphs = draft.engine.trim() ? await client.ensureQueryData(graphsQuery) : [];
    const error = validateEngine(draft, graphs);
    if (error) throw new ProblemError(422, t`The run was not created`, error, t`Engine`);
    return buildRunRequest(draft, graphs);
  }, onRunCreated);
}
