import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { passageQuery, type SpanKey } from "@/shared/api/library";

/** Passages shown before the rest is asked for. */
const FIRST = 6;

/** True for what the log calls a span: a stretch of a stored text. */
export function isSpan(value: unknown): value is SpanKey {
  if (typeof value !== "object" || value === null) return false;
  const { artefact, start, end } = value as Record<string, unknown>;
  return typeof artefact === "string" && typeof start === "number" && typeof end === "number";
}

/** Spans as the passages they stand for. */
export function SpanList({ spans }: { spans: readonly SpanKey[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? spans : spans.slice(0, FIRST);
  return (
    <ol className="spans">
      {shown.map((span) => (
        <SpanLine key={`${span.artefact} ${span.start} ${span.end}`} span={span} />
      ))}
      {shown.length < spans.length && (
        <li>
          <button type="button" className="linkish" onClick={() => setAll(true)}>
            {spans.length - shown.length} more
          </button>
        </li>
      )}
    </ol>
  );
}

function SpanLine({ span }: { span: SpanKey }) {
  const [open, setOpen] = useState(false);
  const { data, isError } = useQuery(passageQuery(span, 0));
  if (isError) return <li className="quiet">A passage that was erased since.</li>;
  return (
    <li>
      <button type="button" className="span-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="span-title">{data?.title ?? "…"}</span>
        <span className={open ? "span-text open" : "span-text"}>{data?.text ?? ""}</span>
      </button>
    </li>
  );
}
