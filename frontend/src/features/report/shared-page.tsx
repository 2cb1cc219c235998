import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { isNotFound } from "@/shared/api/client";
import { type SharedReport, sharedFileUrl, sharedReportQuery } from "@/shared/api/shares";
import { formatDateTime } from "@/shared/format/numbers";
import { useLanguage } from "@/shared/language/language";
import { EmptyState } from "@/shared/ui/empty-state";
import { Loaded } from "@/shared/ui/loaded";
import styles from "./shared-page.module.css";
import { SharedReportView } from "./shared-report-view";

const FORMATS = [
  { format: "pdf", name: "PDF" },
  { format: "docx", name: "Word" },
  { format: "md", name: "Markdown" },
  { format: "html", name: "HTML" },
] as const;

/** A shared report for readers without an account. It has no navigation and asks for no session. */
export function SharedPage({ token }: { token: string }) {
  useLanguage();
  const report = useQuery(sharedReportQuery(token));
  const title = report.data?.title;
  useEffect(() => {
    if (title) document.title = title;
    return () => {
      document.title = "Offing";
    };
  }, [title]);
  if (isNotFound(report.error)) return <EndedLink />;
  return (
    <Loaded query={report} label={t`the report`} fullPage>
      {(shared) => (
        <div className={styles.page}>
          <Head token={token} shared={shared} />
          <main className={styles.main}>
            <SharedReportView report={shared} />
          </main>
        </div>
      )}
    </Loaded>
  );
}

/** What the page is, until when it can be read, and the report as files. */
function Head({ token, shared }: { token: string; shared: SharedReport }) {
  return (
    <header className={styles.head}>
      <p className={styles.about}>
        <Trans>
          Shared report, as it was when the link was made. It can be read here until{" "}
          {formatDateTime(shared.expires_at, "short")}.
        </Trans>
      </p>
      <nav className={styles.files} aria-label={t`Report as a file`}>
        {FORMATS.map(({ format, name }) => (
          <a key={format} href={sharedFileUrl(token, format)} download rel="noreferrer">
            {name}
          </a>
        ))}
        <button type="button" onClick={() => window.print()}>
          <Trans>Print</Trans>
        </button>
      </nav>
    </header>
  );
}

function EndedLink() {
  return (
    <main className={styles.ended}>
      <EmptyState title={t`This link does not work`}>
        <Trans>
          It is not complete, has expired or was revoked. Check that you have the whole address, or ask the person who
          sent it for a new link.
        </Trans>
      </EmptyState>
    </main>
  );
}
