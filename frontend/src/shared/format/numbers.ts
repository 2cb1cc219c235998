/** Formats of numbers and times in the language of the page. */

import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

export function formatCount(value: number): string {
  return formatNumber(value, { maximumFractionDigits: 3 });
}

/** Format a number with a fixed number of decimals and without separators of thousands. */
export function formatDecimal(value: number, digits: number): string {
  return formatNumber(value, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false });
}

/** A format is created once for each language and set of options, because creating one is slow. */
const formats = new Map<string, Intl.NumberFormat>();

function formatNumber(value: number, options: Intl.NumberFormatOptions): string {
  const key = i18n.locale + JSON.stringify(options);
  const format = formats.get(key) ?? new Intl.NumberFormat(i18n.locale, options);
  formats.set(key, format);
  return format.format(value);
}

/** Format 12,345 as `12.3 k`. */
export function formatCompact(value: number): string {
  if (value < 1_000) return formatCount(value);
  if (value < 1_000_000) return t`${formatDecimal(value / 1_000, value < 100_000 ? 1 : 0)} k`;
  return t`${formatDecimal(value / 1_000_000, 1)} M`;
}

export function formatUsd(usd: number): string {
  if (usd > 0 && usd < 0.01) return t`under $0.01`;
  return `$${formatDecimal(usd, 2)}`;
}

export function formatBytes(value: number): string {
  if (value < 1_000) return `${value} B`;
  if (value < 1_000_000) return `${Math.round(value / 1_000)} KB`;
  return `${formatDecimal(value / 1_000_000, 1)} MB`;
}

/** Format seconds as `3 s`, `4 min 10 s`, `2 h 5 min`. */
export function formatDuration(seconds: number): string {
  const total = Math.max(0, Math.round(seconds));
  const s = total % 60;
  const min = Math.floor(total / 60) % 60;
  const h = Math.floor(total / 3600);
  if (total < 60) return t`${s} s`;
  if (total < 3600) return s && total < 600 ? t`${min} min ${s} s` : t`${min} min`;
  return min ? t`${h} h ${min} min` : t`${h} h`;
}

/** Format milliseconds of one call as `40 ms`, `4.1 s`, `2 min`. */
export function formatMs(ms: number): string {
  if (ms < 100) return t`${Math.round(ms)} ms`;
  return ms < 60_000 ? t`${formatDecimal(ms / 1000, 1)} s` : formatDuration(ms / 1000);
}

/** Return the seconds from a moment to `now`, or 0 if the moment is in the future. */
export function secondsSince(moment: string, now: number): number {
  return Math.max(0, (now - Date.parse(moment)) / 1000);
}

/** Format a moment as `just now`, `4 min ago`, `yesterday`, `3 Nov`. */
export function formatAgo(moment: string, now: number): string {
  const seconds = secondsSince(moment, now);
  if (seconds < 45) return t`just now`;
  if (seconds < 3600) return t`${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return t`${Math.round(seconds / 3600)} h ago`;
  if (seconds < 2 * 86_400) return t`yesterday`;
  return new Date(moment).toLocaleDateString(i18n.locale, { day: "numeric", month: "short" });
}

/** Format a moment as a date with its time: `3 Nov 2026, 14:05`. `timeStyle` is `medium` to include seconds. */
export function formatDateTime(moment: string, timeStyle: "short" | "medium"): string {
  return new Date(moment).toLocaleString(i18n.locale, { dateStyle: "medium", timeStyle });
}

/** Format a day of the form `2026-11-03` as `3 Nov 2026`. */
export function formatDay(day: string): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(i18n.locale, { dateStyle: "medium", timeZone: "UTC" });
}

export function shortHash(hash: string): string {
  return hash.length > 10 ? `${hash.slice(0, 4)}…${hash.slice(-2)}` : hash;
}
