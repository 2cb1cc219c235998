import { msg } from "@lingui/core/macro";
import { type ReactNode, useState } from "react";
import { lazyView } from "../ui/lazy-view";
import type { DocumentMark } from "./document-text";

const DocumentReader = lazyView(msg`the document`, async () => (await import("./document-reader")).DocumentReader);

interface OpenDocumentProps {
  title: string;
  textId: string;
  marks?: readonly DocumentMark[];
  marksLabel?: string;
  className?: string;
  /** The name of the button, if its content is not enough. */
  label?: string;
  children: ReactNode;
}

/** A button that opens a document as it was stored. */
export function OpenDocument({
  title,
  textId,
  marks = [],
  marksLabel = "",
  className,
  label,
  children,
}: OpenDocumentProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" dir="auto" className={className} aria-label={label} onClick={() => setOpen(true)}>
        {children}
      </button>
      {isOpen && (
        <DocumentReader
          title={title}
          textId={textId}
          marks={marks}
          marksLabel={marksLabel}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}
