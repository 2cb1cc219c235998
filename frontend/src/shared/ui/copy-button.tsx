import { t } from "@lingui/core/macro";
import { type ReactNode, useState } from "react";

/** Copies a text. The button says whether it worked; without access to the clipboard the text can still be selected. */
export function CopyButton({ text, children }: { text: string; children: ReactNode }) {
  const [result, setResult] = useState<"copied" | "failed" | null>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setResult("copied");
    } catch {
      // Browsers without a secure connection have no clipboard. The label says what to do instead.
      setResult("failed");
    }
  };
  return (
    <button type="button" className="btn small" onClick={copy}>
      {result === null && children}
      {result === "copied" && t`Copied`}
      {result === "failed" && t`Not copied. Select the text instead.`}
    </button>
  );
}
