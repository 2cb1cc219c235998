/** Written by the plugin in `vite-messages.ts`. */
declare module "virtual:view-texts" {
  import type { Messages } from "@lingui/core";
  /** Return the texts that a view loads together with its code. Rejects if they cannot be fetched. */
  export function fetchTexts(view: string, language: string): Promise<Messages>;
}
