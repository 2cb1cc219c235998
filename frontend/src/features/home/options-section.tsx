import type { ReactNode } from "react";
import styles from "./options.module.css";
import type { Settings } from "./settings";
import type { FieldErrors } from "./validation";

export interface OptionsProps {
  settings: Settings;
  errors: FieldErrors;
  onChange(part: Partial<Settings>): void;
}

interface SectionProps {
  title: string;
  children: ReactNode;
}

/** A group of options with its title beside it, or above it on a phone. */
export function Section({ title, children }: SectionProps) {
  return (
    <fieldset className={styles.section}>
      <legend className={styles.title}>{title}</legend>
      <div className={styles.body}>{children}</div>
    </fieldset>
  );
}

/** What is wrong with a group of options that is no single field. */
export function FieldError({ text }: { text: string | undefined }) {
  if (!text) return null;
  return (
    <p role="alert" className={styles.error}>
      {text}
    </p>
  );
}
