/**
 * Keyboard shortcuts that work outside text fields and while no dialog is open. Each component registers its own; `?` lists all that are active.
 */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { useLanguage } from "../language/language";
import { Dialog, isDialogOpen } from "./dialog";
import "./hotkeys.css";

export interface Hotkey {
  /** One key, or two keys in a row separated by a space: `g t`. */
  keys: string;
  description: string;
  run(): void;
}

type HotkeyRegistry = Set<{ current: readonly Hotkey[] }>;

const HotkeyContext = createContext<HotkeyRegistry>(new Set());

/** Maximum time between the two keys of a sequence, in milliseconds. */
const MAX_SEQUENCE_MS = 1_200;

/** What uses keys itself: fields, menus and panels. */
const KEY_USERS = "input,textarea,select,[contenteditable],[role=menu],[role=dialog]";

/** Return whether a key belongs to something else. Behind an open dialog that is so even if nothing has the focus. */
function isTaken(target: EventTarget | null): boolean {
  return isDialogOpen() || (target instanceof Element && target.closest(KEY_USERS) !== null);
}

/** Return the hotkey for a key pressed after `previousKey`. `null` means that there is none. */
export function findHotkey(hotkeys: readonly Hotkey[], previousKey: string, key: string): Hotkey | null {
  const sequence = previousKey ? `${previousKey} ${key}` : "";
  return hotkeys.find((hotkey) => hotkey.keys === sequence) ?? hotkeys.find((hotkey) => hotkey.keys === key) ?? null;
}

export function HotkeyProvider({ children }: { children: ReactNode }) {
  useLanguage();
  const registry = useMemo<HotkeyRegistry>(() => new Set(), []);
  const [isHelpOpen, setHelp] = useState(false);
  const lastKey = useRef({ key: "", at: 0 });

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target)) return;
      const last = event.timeStamp - lastKey.current.at < MAX_SEQUENCE_MS ? lastKey.current.key : "";
      lastKey.current = { key: event.key, at: event.timeStamp };
      if (event.key === "?") return setHelp(true);
      const hotkey = findHotkey(
        [...registry].flatMap((entry) => entry.current),
        last,
        event.key,
      );
      if (!hotkey) return;
      event.preventDefault();
      lastKey.current = { key: "", at: 0 };
      hotkey.run();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [registry]);

  return (
    <HotkeyContext value={registry}>
      {children}
      <Dialog open={isHelpOpen} onClose={() => setHelp(false)} title={t`Keyboard shortcuts`}>
        <dl className="keys">
          {[...registry]
            .flatMap((entry) => entry.current)
            .map((hotkey) => (
              <div key={hotkey.keys}>
                <dt>
                  {hotkey.keys.split(" ").map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{hotkey.description}</dd>
              </div>
            ))}
          <div>
            <dt>
              <kbd>?</kbd>
            </dt>
            <dd>
              <Trans>Show this list</Trans>
            </dd>
          </div>
        </dl>
      </Dialog>
    </HotkeyContext>
  );
}

export function useHotkeys(hotkeys: readonly Hotkey[]): void {
  const registry = useContext(HotkeyContext);
  const latest = useRef(hotkeys);
  useEffect(() => {
    latest.current = hotkeys;
  });
  useEffect(() => {
    registry.add(latest);
    return () => {
      registry.delete(latest);
    };
  }, [registry]);
}
