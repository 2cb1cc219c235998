/** Addresses that only the computer itself can reach. Pure. */

/** Return whether a host, as `URL.hostname` gives it, is the computer on which it is opened. */
export function isLoopback(host: string): boolean {
  return /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/i.test(host);
}
