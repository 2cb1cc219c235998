import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { Report } from "@/shared/api/reports";
import styles from "./report-tab.module.css";
import { sectionId } from "./report-text";

/** Sections from which a report has a table of contents. */
const MIN_SECTIONS = 4;

/** The headings of a long report, which lead to their sections. */
export function Contents({ report }: { report: Report }) {
  const sections = report.sections.map(({ heading }, at) => ({ heading, at })).filter(({ heading }) => heading);
  if (sections.length < MIN_SECTIONS) return null;
  return (
    <details className={styles.contents} open={innerWidth > 900}>
      <summary>
        <Trans>Contents</Trans>
      </summary>
      <nav aria-label={t`Contents of the report`}>
        <ol>
          {sections.map(({ heading, at }) => (
            <li key={at}>
              <button type="button" dir="auto" onClick={() => goToSection(at)}>
                {heading}
              </button>
            </li>
          ))}
        </ol>
      </nav>
    </details>
  );
}

function goToSection(at: number): void {
  const section = document.getElementById(sectionId(at));
  section?.scrollIntoView({ block: "start" });
  section?.focus({ preventScroll: true });
}
