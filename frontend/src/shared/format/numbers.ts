/** Formats of numbers and times. Pure. */

const wholeNumber = new Intl.NumberFormat("en");

export function formatCount(value: number): string {
  return wholeNumber.format(value);
}

/** Return text such as `3 steps` or `1 step`. */
export function pluralize(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

/** Format 12,345 as `12.3 k`. */
export function formatCompact(value: number): string {
  if (value < 1_000) return formatCount(value);
  if (value < 1_000_000) return `${(value / 1_000).toFixed(value < 100_000 ? 1 : 0)} k`;
  return `${(value / 1_000_000).toFixed(1)} M`;
}

export function formatUsd(usd: number): string {
  if (usd > 0 && usd < 0.01) return "under $0.01";
  return `$${usd.toFixed(2)}`;
}

export function formatBytes(value: number): string {
  if (value < 1_000) return `${value} B`;
  if (value < 1_000_000) return `${Math.round(value / 1_000)} KB`;
  return `${(value / 1_000_000).toFixed(1)} MB`;
}

/** Format seconds as `3 s`, `4 min 10 s`, `2 h 5 min`. */
export function formatDuration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 && s < 600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 60)} min`;
  const minutes = Math.floor((s % 3600) / 60);
  return minutes ? `${Math.floor(s / 3600)} h ${minutes} min` : `${Math.floor(s / 3600)} h`;
}

/** Format milliseconds of one call as `40 ms`, `4.1 s`, `2 min`. */
export function formatMs(ms: number): string {
  if (ms < 100) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : formatDuration(ms / 1000);
}

/** Return the seconds from a moment to `now`, or 0 if the moment is in the future. */
export function secondsSince(moment: string, now: number): number {
  return Math.max(0, (now - Date.parse(moment)) / 1000);
}

/** Format a moment as `just now`, `4 min ago`, `yesterday`, `3 Nov`. */
export function formatAgo(moment: string, now: number): string {
  const seconds = secondsSince(moment, now);
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 2 * 86_400) return "yesterday";
  return new Date(moment).toLocaleDateString("en", { day: "numeric", month: "short" });
}

export function shortHash(hash: string): string {
  return hash.length > 10 ? `${hash.slice(0, 4)}…${hash.slice(-2)}` : hash;
}
