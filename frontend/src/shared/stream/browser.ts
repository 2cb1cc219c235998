/** The hub on this browser's own parts. */

import { type Channel, type HubSeams, StreamHub } from "./hub";

const NAME = "offing.events";

function browserChannel(): Channel | null {
  if (typeof BroadcastChannel === "undefined") return null;
  const channel = new BroadcastChannel(NAME);
  return {
    post: (note) => channel.postMessage(note),
    listen: (hear) => channel.addEventListener("message", (message) => hear(message.data)),
  };
}

function browserLead(): HubSeams["lead"] {
  if (typeof navigator === "undefined" || !navigator.locks) return null;
  return (leading) => {
    let resign: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      resign = resolve;
    });
    const giveUp = new AbortController();
    navigator.locks
      .request(NAME, { signal: giveUp.signal }, () => {
        leading();
        return held;
      })
      .catch((error: unknown) => {
        if (!(error instanceof DOMException && error.name === "AbortError")) throw error;
      });
    return () => {
      giveUp.abort();
      resign();
    };
  };
}

/** Random text for names that only have to differ. `randomUUID` is absent on pages served without TLS. */
export function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function browserHub(): StreamHub {
  const channel = browserChannel();
  const hub = new StreamHub({
    tab: randomName(),
    channel,
    lead: channel ? browserLead() : null,
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
