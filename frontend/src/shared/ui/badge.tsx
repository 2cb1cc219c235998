import type { ReactNode } from "react";
import styles from "./badge.module.css";
import { classNames } from "./class-names";

export type Tone = "neutral" | "sea" | "moss" | "sun" | "coral";

interface BadgeProps {
  /** The color of the kind or state. The text says it too. */
  tone?: Tone;
  children: ReactNode;
}

/** A state as a word with a colored dot. */
export function Badge({ tone = "neutral", children }: BadgeProps) {
  return (
    <span className={classNames(styles.badge, tone !== "neutral" && styles[tone])}>
      <i />
      {children}
    </span>
  );
}

/** An identifier or a short value of record, such as `p. 6`. */
export function Tag({ children }: { children: ReactNode }) {
  return <span className={styles.tag}>{children}</span>;
}
