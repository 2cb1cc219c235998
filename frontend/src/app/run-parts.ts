/** The parts that every view of a run shows beside its header, loaded as one. */

export { PlanRail } from "@/features/plan/plan-rail";
export { EvidencePreview } from "@/features/report/evidence-preview";
export { NoReport } from "@/features/report/no-report";
export { ChildRunList } from "@/features/run/child-run-list";
export { DigDeeper, MessageBar } from "@/features/run/message-bar";
export { MinimapPanel } from "@/features/run/minimap-panel";
export { ThreadTrail } from "@/features/run/thread-trail";
export { WaitReason } from "@/features/run/wait-reason";
