/** Who made a version of a report, in words. Pure. */

import { t } from "@lingui/core/macro";
import type { ReportVersion } from "@/shared/api/reports";

/** Describe a person, as in "edited in the web UI". The server knows people by their session or their API key. */
export function describePerson(name: string): string {
  if (name === "web_ui") return t`in the web UI`;
  return name.startsWith("key:") ? t`with the API key ${name.slice("key:".length)}` : t`by ${name}`;
}

/** How stored versions name a graph's own writer. */
// Not translated: a value that the server stores.
const NO_MODEL = "the graph's own writer, without a model";

type Version = Pick<ReportVersion, "edited_by" | "follow_up_run_id">;

/** Describe who made a version, as in "edited in the web UI". */
export function describeAuthor({ edited_by: by, follow_up_run_id: run }: Version): string {
  if (by === null) return t`written by the run`;
  if (run === null) return t`edited ${describePerson(by)}`;
  return by === NO_MODEL ? t`edited by a follow-up without a model` : t`edited by a follow-up (${by})`;
}
