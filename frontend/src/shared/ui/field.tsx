/** Form fields: a label, a description, an error and one control. */

import { type ComponentProps, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from "react";
import { classNames } from "./class-names";
import styles from "./field.module.css";

/** Attributes that connect a control with its field. */
export interface FieldControl {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": boolean;
}

interface FieldProps {
  label: ReactNode;
  description?: ReactNode;
  /** What is wrong with the value and how to correct it. Empty means that the value is valid. */
  error?: string;
  children(control: FieldControl): ReactNode;
}

export function Field({ label, description, error = "", children }: FieldProps) {
  const id = useId();
  const noteIds = [description && `${id}-description`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className={styles.wrapper}>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      {children({ id, "aria-describedby": noteIds || undefined, "aria-invalid": error !== "" })}
      {description && (
        <span id={`${id}-description`} className={styles.note}>
          {description}
        </span>
      )}
      {error && (
        <span id={`${id}-error`} className={styles.error} role="alert">
          {error}
        </span>
      )}
    </div>
  );
}

export function Input({ className, ...rest }: ComponentProps<"input">) {
  return <input className={classNames(styles.control, className)} {...rest} />;
}

/** The browser's own list of options, which phones show in their own way. */
export function Select({ className, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select className={classNames(styles.control, className)} {...rest} />;
}

interface CheckboxProps extends Omit<InputHTMLAttributes<HTMLInputElement>, "type" | "onChange"> {
  label: ReactNode;
  description?: ReactNode;
  onChange(checked: boolean): void;
}

export function Checkbox({ label, description, onChange, ...rest }: CheckboxProps) {
  const id = useId();
  return (
    <div className={styles.check}>
      <input
        id={id}
        type="checkbox"
        aria-describedby={description ? `${id}-description` : undefined}
        onChange={(event) => onChange(event.target.checked)}
        {...rest}
      />
      <span>
        <label htmlFor={id}>{label}</label>
        {description && (
          <span id={`${id}-description`} className={styles.note}>
            {description}
          </span>
        )}
      </span>
    </div>
  );
}
