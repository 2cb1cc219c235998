import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { ModelSetup } from "@/shared/model-setup/model-setup";
import { Button } from "@/shared/ui/button";
import { ProblemNote } from "@/shared/ui/problem-note";
import { UploadList } from "@/shared/upload/upload-list";
import { useUpload } from "@/shared/upload/use-upload";
import { DEMO_QUESTION, readDemoDocuments } from "./demo-documents";
import styles from "./first-visit.module.css";

interface FirstVisitProps {
  /** Put a question into the form. An empty one only moves the focus there. */
  onQuestion(question: string): void;
  /** One of the ways was begun: the page keeps it open although the installation has a model or a run now. */
  onBegin(): void;
  onClose(): void;
}

type Way = "setup" | "without" | "done";

/** Two ways to a first answer: set up a model, or try Offing without one. */
export function FirstVisit({ onQuestion, onBegin, onClose }: FirstVisitProps) {
  const [way, setWay] = useState<Way | null>(null);
  const [model, setModel] = useState("");
  const begin = (next: Way) => {
    setWay(next);
    onBegin();
  };
  return (
    <section className={styles.visit} aria-labelledby="first-visit">
      <div className={styles.head}>
        <h2 id="first-visit">{way === "done" ? t`${model} answers your questions` : t`Two ways to begin`}</h2>
        <Button kind="plain" small onClick={onClose}>
          {way === "done" ? t`Close` : t`Skip`}
        </Button>
      </div>
      {way === null && <Ways onSetup={() => begin("setup")} onWithout={() => begin("without")} />}
      {way === "setup" && (
        <ModelSetup
          onDone={({ name }) => {
            setModel(name);
            setWay("done");
          }}
          onCancel={() => setWay(null)}
        />
      )}
      {way === "without" && <WithoutModel onQuestion={onQuestion} onBack={() => setWay(null)} />}
      {way === "done" && <FirstDocuments onQuestion={onQuestion} />}
    </section>
  );
}

function Ways({ onSetup, onWithout }: { onSetup(): void; onWithout(): void }) {
  return (
    <div className={styles.ways}>
      <div>
        <h3>
          <Trans>Set up a model</Trans>
        </h3>
        <p>
          <Trans>
            A language model plans the search, reads, and writes the report. Use a service with your key, or a server of
            your own. It takes a minute or two.
          </Trans>
        </p>
        <Button onClick={onSetup}>
          <Trans>Set up a model</Trans>
        </Button>
      </div>
      <div>
        <h3>
          <Trans>Try without a model</Trans>
        </h3>
        <p>
          <Trans>
            Offing searches documents, picks sentences that fit the question, and cites them. That is not a language
            model: it quotes and does not write. It costs nothing, and nothing leaves this machine.
          </Trans>
        </p>
        <Button onClick={onWithout}>
          <Trans>Try without a model</Trans>
        </Button>
      </div>
    </div>
  );
}

function WithoutModel({ onQuestion, onBack }: Pick<FirstVisitProps, "onQuestion"> & { onBack(): void }) {
  return (
    <>
      <p>
        <Trans>
          The report will consist of quotes from the documents. You can set up a model at any time in Settings, and ask
          again.
        </Trans>
      </p>
      <FirstDocuments onQuestion={onQuestion} />
      <div className={styles.actions}>
        <Button kind="plain" onClick={onBack}>
          <Trans>Back</Trans>
        </Button>
      </div>
    </>
  );
}

/** Documents for the first question: those of the reader, or three that come with Offing. */
function FirstDocuments({ onQuestion }: Pick<FirstVisitProps, "onQuestion">) {
  const upload = useUpload("question.documents");
  const [isDemo, setDemo] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const addDemo = async () => {
    setDemo(true);
    setError(null);
    try {
      await upload.send(readDemoDocuments(), "");
      onQuestion(DEMO_QUESTION);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      <p>
        <Trans>
          Next, add documents: drop files or a folder on the form above. Or use three short documents about lighthouses
          that come with Offing.
        </Trans>
      </p>
      <div className={styles.actions}>
        <Button disabled={upload.state.busy} onClick={addDemo}>
          <Trans>Use the demo documents</Trans>
        </Button>
        <Button kind="plain" onClick={() => onQuestion("")}>
          <Trans>Write a question</Trans>
        </Button>
      </div>
      {isDemo && upload.state.busy && <UploadList state={upload.state} />}
      {isDemo && !upload.state.busy && !upload.state.error && !error && (
        <p role="status">
          <Trans>The documents are ready, and a question is in the form. Choose “Ask”.</Trans>
        </p>
      )}
      <ProblemNote error={error} />
    </>
  );
}
