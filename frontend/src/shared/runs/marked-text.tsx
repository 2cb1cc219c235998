import { Fragment } from "react";
import type { Schemas } from "../api/client";

interface MarkedTextProps {
  text: string;
  /** Parts to mark, in order, in code points. */
  marks: readonly Schemas["MarkOut"][];
}

/** A text with the searched words marked. */
export function MarkedText({ text, marks }: MarkedTextProps) {
  // The server counts code points, and a string of the browser has UTF-16 units.
  const chars = Array.from(text);
  const slice = (from: number, to?: number) => chars.slice(from, to).join("");
  let at = 0;
  const parts = marks.map(({ start, end }) => {
    const before = slice(at, start);
    at = end;
    return (
      <Fragment key={start}>
        {before}
        <mark>{slice(start, end)}</mark>
      </Fragment>
    );
  });
  return (
    <>
      {parts}
      {slice(at)}
    </>
  );
}
