import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { isNotFound } from "@/shared/api/client";
import { passageQuery } from "@/shared/api/library";
import type { RunSource } from "@/shared/api/run-views";
import { shortHash } from "@/shared/format/numbers";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { Loaded } from "@/shared/ui/loaded";
import "./sources-view.css";

interface SourceReaderProps {
  source: RunSource;
  title: string;
  onClose(): void;
}

/** Characters around a passage at first, and with each step further. The server returns at most 5,000 on each side. */
const CONTEXT_STEPS = [600, 2_000, 5_000] as const;

/** The stored text of a source around the passages that the run received. */
export function SourceReader({ source, title, onClose }: SourceReaderProps) {
  const [at, setAt] = useState(0);
  const span = source.spans[at];
  return (
    <Dialog open onClose={onClose} title={title}>
      {source.spans.length > 1 && (
        <p className="reader-nav num">
          <Button small disabled={at === 0} onClick={() => setAt(at - 1)}>
            <Trans>Previous passage</Trans>
          </Button>
          <Trans>
            {at + 1} of {source.spans.length}
          </Trans>
          <Button small disabled={at >= source.spans.length - 1} onClick={() => setAt(at + 1)}>
            <Trans>Next passage</Trans>
          </Button>
        </p>
      )}
      {span && <Passage key={`${span.text_id} ${span.start} ${span.end}`} span={span} />}
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Close</Trans>
        </Button>
      </div>
    </Dialog>
  );
}

function Passage({ span }: { span: RunSource["spans"][number] }) {
  const [step, setStep] = useState(0);
  const around = CONTEXT_STEPS[step] ?? 0;
  const passage = useQuery(passageQuery(span, around));
  if (isNotFound(passage.error)) {
    return (
      <p className="quiet">
        <Trans>This text was erased from the library.</Trans>
      </p>
    );
  }
  return (
    <Loaded query={passage} label={t`the passage`}>
      {({ before, text, after, snapshot }) => {
        const isAll = before.length < around && after.length < around;
        return (
          <>
            <div dir="auto" className="reader-text">
              <span className="quiet">{before}</span>
              <mark>{text}</mark>
              <span className="quiet">{after}</span>
            </div>
            <p className="reader-nav">
              {!isAll && step + 1 < CONTEXT_STEPS.length && (
                <Button small onClick={() => setStep(step + 1)}>
                  <Trans>Show more around it</Trans>
                </Button>
              )}
              <span className="quiet" title={snapshot}>
                <Trans>
                  Text as it was stored, <span className="mono">{shortHash(snapshot)}</span>
                </Trans>
              </span>
            </p>
          </>
        );
      }}
    </Loaded>
  );
}
