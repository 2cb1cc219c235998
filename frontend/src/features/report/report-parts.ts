/** Parts of the report tab beside the text, as an address names them. */
export const REPORT_PARTS = ["claims", "versions", "edit"] as const;
export type ReportPart = (typeof REPORT_PARTS)[number];
