import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { tenantQuery } from "@/shared/api/installation";
import { recentRunsQuery } from "@/shared/api/runs";

const STORAGE_KEY = "offing.first-visit";

/** Whether the page shows the ways to a first answer, and how they begin and end. */
export interface FirstVisitState {
  isShown: boolean;
  begin(): void;
  close(): void;
}

/**
 * A first visit has no run and no model. What a person began stays until it is closed, and what was closed stays closed
 * in this browser. A failure to read the runs or the settings is none: their own views show it.
 */
export function useFirstVisit(): FirstVisitState {
  const [state, setState] = useState<"unseen" | "begun" | "closed">(() => (wasClosed() ? "closed" : "unseen"));
  const runs = useQuery({ ...recentRunsQuery(""), enabled: state === "unseen" });
  const tenant = useQuery({ ...tenantQuery, enabled: state === "unseen" });
  const hasFailed = runs.error !== null || tenant.error !== null;
  const isNew =
    !hasFailed &&
    runs.data?.items.length === 0 &&
    tenant.data?.default_preset === null &&
    tenant.data.default_engine === "extractive";
  const close = () => {
    setState("closed");
    storeClosed();
  };
  return { isShown: state === "begun" || (state === "unseen" && isNew), begin: () => setState("begun"), close };
}

function wasClosed(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) !== null;
  } catch {
    // Some private windows block storage.
    return false;
  }
}

function storeClosed(): void {
  try {
    localStorage.setItem(STORAGE_KEY, "closed");
  } catch {
    // Without storage, it stays closed until the page is left.
  }
}
