/** The hub with the browser's own channel, locks and event source. */

import { type Channel, type HubOptions, StreamHub } from "./hub";

const CHANNEL_NAME = "offing.events";

function browserChannel(): Channel | null {
  if (typeof BroadcastChannel === "undefined") return null;
  const channel = new BroadcastChannel(CHANNEL_NAME);
  return {
    post: (message) => channel.postMessage(message),
    listen: (onMessage) => channel.addEventListener("message", (message) => onMessage(message.data)),
  };
}

function browserLeadership(): HubOptions["lead"] {
  if (typeof navigator === "undefined" || !navigator.locks) return null;
  return (onLead) => {
    let resign: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      resign = resolve;
    });
    const abort = new AbortController();
    navigator.locks
      .request(CHANNEL_NAME, { signal: abort.signal }, () => {
        onLead();
        return released;
      })
      .catch((error: unknown) => {
        if (!(error instanceof DOMException && error.name === "AbortError")) throw error;
      });
    return () => {
      abort.abort();
      resign();
    };
  };
}

/** Return a random id. `randomUUID` is not available on pages served without TLS. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function createBrowserHub(): StreamHub {
  const channel = browserChannel();
  const hub = new StreamHub({
    tab: randomId(),
    channel,
    lead: channel ? browserLeadership() : null,
    open: (address) => new EventSource(address),
    after: (ms, call) => {
      const timer = setTimeout(call, ms);
      return () => clearTimeout(timer);
    },
    now: () => Date.now(),
  });
  addEventListener("pagehide", () => hub.leave());
  addEventListener("pageshow", (event) => event.persisted && hub.rejoin());
  return hub;
}
