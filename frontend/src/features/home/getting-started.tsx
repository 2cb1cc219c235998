import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { MinimapThumbnail } from "@/shared/minimap/minimap-line";
import "./recent-runs.css";

const EXAMPLE = msg`Which of these papers report a result on more than one benchmark, and what were the results?`;

/** How to begin, for a browser without any run. */
export function GettingStarted({ onExample }: { onExample(question: string): void }) {
  return (
    <section className="recent first" aria-label={t`Getting started`}>
      <h2 className="label">
        <Trans>How it works</Trans>
      </h2>
      <ol>
        <li>
          <Trans>
            <b>Drop a folder of documents on the form above.</b> Supported formats are PDF, HTML, Markdown, plain text
            and Word. The documents stay on this machine.
          </Trans>
        </li>
        <li>
          <Trans>
            <b>Ask a question that takes research.</b> For example:
          </Trans>{" "}
          <button type="button" className="linkish" onClick={() => onExample(i18n._(EXAMPLE))}>
            {i18n._(EXAMPLE)}
          </button>
        </li>
        <li>
          <Trans>
            <b>Watch the run, send it messages, or come back later.</b> Runs continue when you close this page. Each
            sentence of the report shows the passage that supports it, or is marked as unsupported.
          </Trans>
        </li>
      </ol>
      <div className="first-line">
        <MinimapThumbnail marks="npprsmvpsrmvpsmvprfrmvpsrmmvprmvpsrsmvpcmvprmvw" steps={48} height={44} />
        <p className="quiet">
          <Trans>
            The step minimap of a run. Marks above the line are plan, search and read steps. Marks below it are memory,
            verification and report steps.
          </Trans>
        </p>
      </div>
    </section>
  );
}
