import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useLanguage } from "@/shared/language/language";
import { Link } from "@/shared/routing/routing";
import { EmptyState } from "@/shared/ui/empty-state";
import { useMediaQuery } from "@/shared/ui/hooks";
import { SECTIONS, type Section } from "./sections";
import styles from "./settings-page.module.css";

interface SettingsPageProps {
  /** Name of the open section. `null` means none: a wide page shows the first, and a phone the list. */
  section: string | null;
}

/** The list of the sections, and beside it the open one. A phone shows either the list or a section. */
export function SettingsPage({ section }: SettingsPageProps) {
  useLanguage();
  const isNarrow = useMediaQuery("(max-width: 900px)");
  const open = section === null ? (isNarrow ? undefined : SECTIONS[0]) : SECTIONS.find(({ name }) => name === section);
  return (
    <main className={styles.page}>
      {(!isNarrow || section === null) && <SectionList current={open} />}
      {(section !== null || open) && (
        <div className={styles.section}>
          {isNarrow && (
            <Link to="/settings" className={styles.back}>
              <Trans>All settings</Trans>
            </Link>
          )}
          {open ? <OpenSection key={open.name} section={open} /> : <UnknownSection />}
        </div>
      )}
    </main>
  );
}

function SectionList({ current }: { current: Section | undefined }) {
  return (
    <div className={styles.list}>
      <h1>
        <Trans>Settings</Trans>
      </h1>
      <nav aria-label={t`Sections of the settings`}>
        {SECTIONS.map((section) => (
          <Link
            key={section.name}
            to="/settings/$section"
            params={{ section: section.name }}
            className={styles.item}
            aria-current={section === current ? "page" : undefined}
          >
            {i18n._(section.title)}
            <small>{i18n._(section.description)}</small>
          </Link>
        ))}
      </nav>
    </div>
  );
}

function OpenSection({ section: { title, View } }: { section: Section }) {
  return (
    <>
      <h2 className={styles.title}>{i18n._(title)}</h2>
      <View />
    </>
  );
}

function UnknownSection() {
  return (
    <EmptyState title={t`There is no such section`}>
      <Trans>
        The link may be incomplete. <Link to="/settings">All settings</Link>
      </Trans>
    </EmptyState>
  );
}
