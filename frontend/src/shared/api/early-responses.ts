/** The responses to the requests that `public/start.js` sends before the code of the page is loaded. */

/** Milliseconds since the navigation after which a response may no longer be what the server would send. */
const MAX_AGE_MS = 10_000;

declare global {
  interface Window {
    /** Responses by the path and query of their request. Each is taken once. */
    offingEarlyResponses?: Map<string, Promise<Response>>;
  }
}

/** Return the response to a GET request that was already sent, once. `undefined` means that there is none. */
export function takeEarlyResponse(address: string): Promise<Response> | undefined {
  const responses = globalThis.window?.offingEarlyResponses;
  const response = responses?.get(address);
  responses?.delete(address);
  return performance.now() < MAX_AGE_MS ? response : undefined;
}
