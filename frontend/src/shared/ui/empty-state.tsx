import type { ReactNode } from "react";
import styles from "./empty-state.module.css";

interface EmptyStateProps {
  /** What there is not. */
  title: string;
  /** The next step, with a real example. */
  children: ReactNode;
  /** The button or link that takes the next step. */
  action?: ReactNode;
}

/** Shown where a list or a view has no content: what is missing and how to get it. */
export function EmptyState({ title, children, action }: EmptyStateProps) {
  return (
    <div className={styles.empty}>
      <b>{title}</b>
      {children}
      {action && <div className={styles.action}>{action}</div>}
    </div>
  );
}
