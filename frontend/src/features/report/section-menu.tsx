import { t } from "@lingui/core/macro";
import type { Report } from "@/shared/api/reports";
import { Menu, type MenuAction } from "@/shared/ui/menu";
import type { AskAbout } from "./report-view";

/** Return the follow-ups on a part of a report. */
export function listAskActions(onAsk: AskAbout, excerpt: string): MenuAction[] {
  return [
    { name: t`Ask about this…`, onAction: () => onAsk("question", excerpt) },
    { name: t`Dig deeper here…`, onAction: () => onAsk("research", excerpt) },
  ];
}

/** Follow-ups on a whole section. */
export function SectionMenu({ section, onAsk }: { section: Report["sections"][number]; onAsk: AskAbout }) {
  const excerpt = [section.heading, ...section.sentences.map((sentence) => sentence.text)].join("\n");
  return (
    <Menu
      label="⋮"
      name={t`Follow-ups on the section ${section.heading}`}
      className="sentence-more section-more"
      items={listAskActions(onAsk, excerpt)}
    />
  );
}
