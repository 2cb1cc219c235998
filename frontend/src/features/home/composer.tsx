import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type DragEvent, type KeyboardEvent, useState } from "react";
import { enginesQuery, graphsQuery, mcpServersQuery } from "@/shared/api/catalog";
import { ApiProblem } from "@/shared/api/client";
import { collectionsQuery } from "@/shared/api/library";
import type { Run } from "@/shared/api/runs";
import { useCreateRun } from "@/shared/api/use-create-run";
import { useDraft } from "@/shared/ui/drafts";
import { ProblemNote } from "@/shared/ui/problem-note";
import { type Picked, readDrop } from "@/shared/upload/read-drop";
import { UploadList } from "@/shared/upload/upload-list";
import { collectionsOf, singlesOf, sourcesOf, useUpload } from "@/shared/upload/use-upload";
import { DepthField } from "./depth-field";
import { DocumentsField } from "./documents-field";
import { LimitsField } from "./limits-field";
import { attachedWords, complaint, type Draft, engineComplaint, runRequest } from "./request";
import "./composer.css";

interface ComposerProps {
  onAsked(run: Run): void;
}

type Settings = Omit<Draft, "question" | "sources" | "attachedTo" | "singles">;

const START: Settings = {
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

/** Question, documents, depth and limits. A reload keeps all of it. */
export function Composer({ onAsked }: ComposerProps) {
  const [question, setQuestion] = useDraft("question", "");
  const [settings, setSettings] = useDraft("question.settings", START);
  const [complained, setComplained] = useState<string | null>(null);
  const [over, setOver] = useState(false);
  const upload = useUpload("question.documents");
  const graphs = useQuery(graphsQuery);
  const engines = useQuery(enginesQuery);
  const collections = useQuery(collectionsQuery);
  const servers = useQuery(mcpServersQuery);
  const ask = useAsk((run) => {
    setQuestion("");
    setSettings(START);
    upload.clear();
    onAsked(run);
  });
  const { results, busy } = upload.state;
  const attached = { sources: sourcesOf(results), attachedTo: collectionsOf(results), singles: singlesOf(results) };
  const change = (part: Partial<Settings>) => setSettings({ ...settings, ...part });

  const submit = () => {
    const draft = { ...settings, ...attached, question };
    const wrong = busy ? "Wait until the documents are read." : complaint(draft);
    setComplained(wrong);
    if (!wrong) ask.mutate(draft);
  };
  const take = (picked: Picked[] | Promise<Picked[]>) => upload.send(picked, "");
  const dropped = (event: DragEvent) => {
    setOver(false);
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    take(readDrop(event.dataTransfer));
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit();
  };

  return (
    <form
      className={over ? "composer over" : "composer"}
      aria-label="New question"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={dropped}
    >
      <label className="visually-hidden" htmlFor="question">
        Question
      </label>
      <textarea
        id="question"
        className="composer-question"
        rows={3}
        value={question}
        placeholder="What do you want to know? A hard question is welcome."
        aria-invalid={complained !== null}
        aria-describedby="composer-complaint"
        onChange={(event) => setQuestion(event.target.value)}
        onKeyDown={keys}
      />
      <DocumentsField
        collections={collections}
        chosen={settings.collections}
        attached={attachedWords(attached)}
        web={settings.web}
        onChoose={(chosen) => change({ collections: chosen })}
        onWeb={(web) => change({ web })}
        code={settings.code}
        onCode={(code) => change({ code })}
        servers={servers}
        mcp={settings.mcp}
        onMcp={(mcp) => change({ mcp })}
        onPick={take}
      />
      <UploadList state={upload.state} onClear={upload.clear} />
      <div className="composer-foot">
        <DepthField turns={settings.turns} onChange={(turns) => change({ turns })} />
        <LimitsField settings={settings} graphs={graphs} engines={engines} onChange={change} />
        <button type="submit" className="btn primary" disabled={ask.isPending}>
          {ask.isPending ? "Asking…" : "Ask"}
        </button>
      </div>
      <p id="composer-complaint" className="composer-complaint" role="alert">
        {complained}
      </p>
      <ProblemNote error={ask.error} />
    </form>
  );
}

/**
 * An engine that was chosen waits for the list of graphs, whose roles it answers; without that list nothing is asked.
 */
function useAsk(onAsked: (run: Run) => void) {
  const client = useQueryClient();
  return useCreateRun(async (draft: Draft) => {
    const graphs = draft.engine.trim() ? await client.ensureQueryData(graphsQuery) : [];
    const wrong = engineComplaint(draft, graphs);
    if (wrong) throw new ApiProblem(422, "The question was not asked", wrong, "Answered by");
    return runRequest(draft, graphs);
  }, onAsked);
}
