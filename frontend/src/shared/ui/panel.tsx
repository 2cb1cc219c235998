import { type ReactNode, useId } from "react";
import { classNames } from "./class-names";
import styles from "./panel.module.css";

interface PanelProps {
  title: string;
  /** Level of the heading in its page. */
  level?: 2 | 3;
  /** Buttons at the end of the title's line. */
  actions?: ReactNode;
  /** A card has a border of its own, for content that stands beside other content. A panel has a line above it. */
  card?: boolean;
  children: ReactNode;
}

/** A titled part of a page. Lines separate panels; cards are not put into cards. */
export function Panel({ title, level = 2, actions, card = false, children }: PanelProps) {
  const id = useId();
  const Heading = `h${level}` as const;
  return (
    <section className={classNames(styles.panel, card && styles.card)} aria-labelledby={id}>
      <div className={styles.head}>
        <Heading id={id} className={styles.title}>
          {title}
        </Heading>
        {actions && <span className={styles.actions}>{actions}</span>}
      </div>
      {children}
    </section>
  );
}
