import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { isGone } from "@/shared/api/client";
import { passageQuery, type SpanKey } from "@/shared/api/library";
import { Loaded } from "@/shared/ui/loaded";

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
  const passage = useQuery(passageQuery(span, 0));
  if (isGone(passage.error)) return <li className="quiet">This passage was erased from the library.</li>;
  return (
    <li>
      <Loaded query={passage} what="the passage">
        {({ title, text }) => (
          <button type="button" className="span-line" aria-expanded={open} onClick={() => setOpen(!open)}>
            <span className="span-title">{title}</span>
            <span className={open ? "span-text open" : "span-text"}>{text}</span>
          </button>
        )}
      </Loaded>
    </li>
  );
}
