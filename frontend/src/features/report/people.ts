/** Who made a version of a report, in words. Pure. */

import { t } from "@lingui/core/macro";
import type { ReportVersion } from "@/shared/api/reports";

/** Describe a person, as in "edited in the web UI". The server knows people by their session or their API key. */
export function describePerson(name: string): string {
  if (name === "web_ui") return t`in the web UI`;
  return name.startsWith("key:") ? t`with the API key ${name.slice("key:".length)}` : t`by ${name}`;
}

type Version = Pick<ReportVersion, "edited_by" | "editor">;

/** Describe who made a version, as in "edited in the web UI". */
export function describeAuthor({ edited_by: by, editor }: Version): string {
  if (by === null || editor === null) return t`written by the run`;
  if (editor === "person") return t`edited ${describePerson(by)}`;
  return editor === "no_model" ? t`edited by a follow-up without a model` : t`edited by a follow-up (${by})`;
}
