import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { isSourceSpan, SpanList } from "./span-list";

/** A longer text is folded. */
const MAX_VISIBLE_CHARS = 900;
const MAX_DEPTH = 6;

function isScalar(value: unknown): boolean {
  return value === null || typeof value !== "object";
}

/** Renders JSON readably: names beside values, lists as lists, long texts folded. All of it is rendered as text. */
export function PayloadView({ value, depth = 0 }: { value: unknown; depth?: number }) {
  if (typeof value === "string") return <LongText text={value} />;
  if (isScalar(value)) return <span className="mono">{String(value)}</span>;
  if (depth > MAX_DEPTH) return <span className="mono">{JSON.stringify(value)}</span>;
  if (Array.isArray(value)) return <List values={value} depth={depth} />;
  const entries = Object.entries(value as Record<string, unknown>).filter(([, part]) => part !== null && part !== "");
  if (entries.length === 0)
    return (
      <span className="quiet">
        <Trans>nothing</Trans>
      </span>
    );
  return (
    <dl className="payload">
      {entries.map(([name, part]) => (
        <div key={name}>
          <dt>{name.replaceAll("_", " ")}</dt>
          <dd>
            <PayloadView value={part} depth={depth + 1} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function List({ values, depth }: { values: unknown[]; depth: number }) {
  if (values.length === 0)
    return (
      <span className="quiet">
        <Trans>none</Trans>
      </span>
    );
  if (values.every(isSourceSpan)) return <SpanList spans={values} />;
  if (values.every((value) => isScalar(value) && String(value).length < 40)) {
    return <span dir="auto">{values.map(String).join(", ")}</span>;
  }
  return (
    <ol className="payload-list">
      {values.map((value, at) => (
        // A stored list never changes its order.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <li key={at}>
          <PayloadView value={value} depth={depth + 1} />
        </li>
      ))}
    </ol>
  );
}

function LongText({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const isFolded = text.length > MAX_VISIBLE_CHARS && !open;
  return (
    <span dir="auto" className="payload-text">
      {isFolded ? `${text.slice(0, MAX_VISIBLE_CHARS)}…` : text}
      {text.length > MAX_VISIBLE_CHARS && (
        <button type="button" className="linkish" onClick={() => setOpen(!open)}>
          {open ? t`Collapse` : t`Show all ${text.length} characters`}
        </button>
      )}
    </span>
  );
}
