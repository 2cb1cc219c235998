import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { isNotFound } from "@/shared/api/client";
import { passageQuery, type SourceSpan } from "@/shared/api/library";
import { Loaded } from "@/shared/ui/loaded";

/** Number of passages shown before the list is expanded. */
const MAX_COLLAPSED_SPANS = 6;

/** Return whether a value is a source span: a range of an extracted text. */
export function isSourceSpan(value: unknown): value is SourceSpan {
  if (typeof value !== "object" || value === null) return false;
  const { text_id: textId, start, end } = value as Record<string, unknown>;
  return typeof textId === "string" && typeof start === "number" && typeof end === "number";
}

/** Passages of the source spans. */
export function SpanList({ spans }: { spans: readonly SourceSpan[] }) {
  const [showsAll, setShowsAll] = useState(false);
  const visible = showsAll ? spans : spans.slice(0, MAX_COLLAPSED_SPANS);
  return (
    <ol className="spans">
      {visible.map((span) => (
        <SpanLine key={`${span.text_id} ${span.start} ${span.end}`} span={span} />
      ))}
      {visible.length < spans.length && (
        <li>
          <button type="button" className="linkish" onClick={() => setShowsAll(true)}>
            <Trans>Show {spans.length - visible.length} more</Trans>
          </button>
        </li>
      )}
    </ol>
  );
}

function SpanLine({ span }: { span: SourceSpan }) {
  const [open, setOpen] = useState(false);
  const passage = useQuery(passageQuery(span, 0));
  if (isNotFound(passage.error))
    return (
      <li className="quiet">
        <Trans>This passage was erased from the library.</Trans>
      </li>
    );
  return (
    <li>
      <Loaded query={passage} label={t`the passage`}>
        {({ title, text }) => (
          <button type="button" className="span-line" aria-expanded={open} onClick={() => setOpen(!open)}>
            <span dir="auto" className="span-title">
              {title}
            </span>
            <span dir="auto" className={open ? "span-text open" : "span-text"}>
              {text}
            </span>
          </button>
        )}
      </Loaded>
    </li>
  );
}
