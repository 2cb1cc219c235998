/** Notifications of the browser, which are shown while the tab is hidden if a person has allowed them here. */

import { useSyncExternalStore } from "react";

const STORAGE_KEY = "offing.browser-notifications";

/** `off` means that they were not turned on here, and `denied` that the browser does not allow them. */
export type BrowserNotifications = "on" | "off" | "denied" | "unsupported";

const listeners = new Set<() => void>();

function readState(): BrowserNotifications {
  if (typeof Notification === "undefined") return "unsupported";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && localStorage.getItem(STORAGE_KEY) === "on" ? "on" : "off";
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useBrowserNotifications(): BrowserNotifications {
  return useSyncExternalStore(subscribe, readState);
}

/** Turn them on or off in this browser. Turning them on may ask the person for permission. */
export async function setBrowserNotifications(isOn: boolean): Promise<void> {
  if (isOn && (await Notification.requestPermission()) === "granted") localStorage.setItem(STORAGE_KEY, "on");
  else localStorage.removeItem(STORAGE_KEY);
  for (const listener of listeners) listener();
}

/** Show a notification. One with the same id replaces it, so that several tabs show one. */
export function showBrowserNotification(id: string, title: string, body: string, onClick: () => void): void {
  const shown = new Notification(title, { body, tag: id });
  shown.onclick = () => {
    window.focus();
    shown.close();
    onClick();
  };
}
