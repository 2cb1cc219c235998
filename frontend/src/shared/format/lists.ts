import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

/** Return `a`, `a and b`, or `a, b and c`, in the language of the page. */
export function joinList(parts: readonly string[]): string {
  // British English has no comma before the last `and`.
  const locale = i18n.locale === "en" ? "en-GB" : i18n.locale;
  return new Intl.ListFormat(locale).format(parts);
}

/** Return the parts with the comma of the language between them. */
export function joinParts(parts: readonly string[]): string {
  return parts.join(t({ message: ", ", context: "between parts" }));
}
