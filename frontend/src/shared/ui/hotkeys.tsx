/** Keys that work wherever one is not typing. Each place registers its own; `?` shows all that work here. */

import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { Dialog } from "./dialog";
import "./hotkeys.css";

export interface Hotkey {
  /** One key, or two in a row with a space between: `g t`. */
  keys: string;
  does: string;
  run(): void;
}

type Registry = Set<{ current: readonly Hotkey[] }>;

const HotkeyContext = createContext<Registry>(new Set());

/** Two-key sequences are forgotten after so many milliseconds. */
const SEQUENCE_MS = 1_200;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input,textarea,select,[contenteditable],dialog") !== null;
}

/** The hotkey for a key pressed after `before`. null: none. */
export function matching(hotkeys: readonly Hotkey[], before: string, key: string): Hotkey | null {
  const sequence = before ? `${before} ${key}` : "";
  return hotkeys.find((hotkey) => hotkey.keys === sequence) ?? hotkeys.find((hotkey) => hotkey.keys === key) ?? null;
}

export function HotkeyProvider({ children }: { children: ReactNode }) {
  const registry = useMemo<Registry>(() => new Set(), []);
  const [help, setHelp] = useState(false);
  const before = useRef({ key: "", at: 0 });

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const last = event.timeStamp - before.current.at < SEQUENCE_MS ? before.current.key : "";
      before.current = { key: event.key, at: event.timeStamp };
      if (event.key === "?") return setHelp(true);
      const hit = matching(
        [...registry].flatMap((entry) => entry.current),
        last,
        event.key,
      );
      if (!hit) return;
      event.preventDefault();
      before.current = { key: "", at: 0 };
      hit.run();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [registry]);

  return (
    <HotkeyContext value={registry}>
      {children}
      <Dialog open={help} onClose={() => setHelp(false)} title="Keys">
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
                <dd>{hotkey.does}</dd>
              </div>
            ))}
          <div>
            <dt>
              <kbd>?</kbd>
            </dt>
            <dd>This list</dd>
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
