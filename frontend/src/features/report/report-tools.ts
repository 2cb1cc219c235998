/** Parts of the report tab that are loaded when they are first opened, in one file because they share code. */

export { ClaimsView } from "./claim-table";
export { ReportEditor } from "./report-editor";
export { VersionsPanel } from "./versions-panel";
