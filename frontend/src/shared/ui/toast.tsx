/** Short messages about something that was done, with a button that undoes it. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { useLanguage } from "../language/language";
import { Button, IconButton } from "./button";
import styles from "./toast.module.css";

export interface ToastMessage {
  /** What was done, such as "The draft was replaced." */
  text: string;
  /** Reverts it. Without this, the message has no button to undo. */
  undo?: () => void;
}

type ShowToast = (message: ToastMessage) => void;

/** How long a message stays, in milliseconds. The time does not pass while the pointer or the focus is on it. */
export const TOAST_MS = 8_000;

/** Maximum number of messages at one time. The oldest is dropped for a new one. */
const MAX_TOASTS = 3;

const ToastContext = createContext<ShowToast>(() => undefined);

/** Return the function that shows a message. */
export function useToast(): ShowToast {
  return useContext(ToastContext);
}

interface ShownToast extends ToastMessage {
  id: number;
}

let lastId = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<readonly ShownToast[]>([]);
  const show = useMemo<ShowToast>(
    () => (message) => {
      lastId += 1;
      const toast = { ...message, id: lastId };
      setShown((before) => [...before.slice(1 - MAX_TOASTS), toast]);
    },
    [],
  );
  const close = useCallback((id: number) => setShown((before) => before.filter((one) => one.id !== id)), []);
  return (
    <ToastContext value={show}>
      {children}
      <ToastRegion toasts={shown} onClose={close} />
    </ToastContext>
  );
}

interface RegionProps {
  toasts: readonly ShownToast[];
  onClose(id: number): void;
}

/** The element exists before the first message, so that screen readers announce it. */
function ToastRegion({ toasts, onClose }: RegionProps) {
  useLanguage();
  const [isHeld, setHeld] = useState(false);
  return (
    <section
      className={styles.region}
      aria-label={t`Messages`}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <div role="status" className={styles.list}>
        {toasts.map((toast) => (
          <Toast key={toast.id} toast={toast} isHeld={isHeld} onClose={onClose} />
        ))}
      </div>
    </section>
  );
}

interface ToastProps {
  toast: ShownToast;
  isHeld: boolean;
  onClose(id: number): void;
}

function Toast({ toast, isHeld, onClose }: ToastProps) {
  const { id, text, undo } = toast;
  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(() => onClose(id), TOAST_MS);
    return () => clearTimeout(timer);
  }, [id, isHeld, onClose]);
  const handleUndo = () => {
    undo?.();
    onClose(id);
  };
  return (
    <div className={styles.toast}>
      <span>{text}</span>
      {undo && (
        <Button small onClick={handleUndo}>
          <Trans>Undo</Trans>
        </Button>
      )}
      <IconButton small label={t`Close the message`} onClick={() => onClose(id)}>
        ×
      </IconButton>
    </div>
  );
}
