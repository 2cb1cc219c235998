import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import styles from "./button.module.css";
import { classNames } from "./class-names";
import { Tooltip } from "./tooltip";

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "className"> {
  /** `primary` is the main action of a view, and there is one per view. */
  kind?: "standard" | "primary" | "danger" | "plain";
  small?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

/** Return the class of a button, for links that look like one. */
export function buttonClass(kind: ButtonProps["kind"] = "standard", small = false): string {
  return classNames(styles.button, kind !== "standard" && styles[kind], small && styles.small);
}

export function Button({ kind = "standard", small = false, type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={buttonClass(kind, small)} {...rest} />;
}

interface IconButtonProps extends Omit<ButtonProps, "kind" | "aria-label"> {
  /** Accessible name, which is also shown as a tooltip. */
  label: string;
  children: ReactNode;
}

/** A button that shows only an icon. */
export function IconButton({ label, small = false, type = "button", children, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button type={type} className={classNames(buttonClass("plain", small), styles.icon)} aria-label={label} {...rest}>
        {children}
      </button>
    </Tooltip>
  );
}
