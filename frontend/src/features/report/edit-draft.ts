/** Unsaved changes of a report, kept in the tab until they are saved or discarded. */

import { readDraft } from "@/shared/ui/drafts";
import type { EditedReport } from "./edit-model";

export interface EditDraft {
  /** Version that was edited. */
  base: number;
  edit: EditedReport;
  note: string;
}

export function draftKey(runId: string): string {
  return `report-edit.${runId}`;
}

export function buildDraft(base: number, edit: EditedReport, note: string): EditDraft {
  return { base, edit, note };
}

/** Return the unsaved changes of a run's report. `null` means that there are none. */
export function readEditDraft(runId: string): EditDraft | null {
  return readDraft<EditDraft | null>(draftKey(runId), null);
}
