import { useEffect, useState } from "react";
import { ViewLoadError } from "../api/client";
import { checkServer } from "../api/server-status";
import { hasUnsavedInput } from "./unsaved-input";

type Overlays = typeof import("./overlays");

let loaded: Overlays | null = null;

interface OverlaysResult {
  /** `null` until the code is loaded. */
  overlays: Overlays | null;
  /** Why the code could not be loaded. The next time that `isNeeded` becomes true, it is tried again. */
  error: ViewLoadError | null;
}

/** Load the code of menus, popovers, tooltips and combo boxes once `isNeeded` is true. */
export function useOverlays(isNeeded: boolean): OverlaysResult {
  const [result, setResult] = useState<OverlaysResult>({ overlays: loaded, error: null });
  useEffect(() => {
    if (!isNeeded) return;
    let isCurrent = true;
    const load = async () => {
      try {
        loaded ??= await import("./overlays");
        if (isCurrent) setResult({ overlays: loaded, error: null });
      } catch {
        checkServer();
        if (isCurrent) setResult({ overlays: null, error: new ViewLoadError(hasUnsavedInput()) });
      }
    };
    load();
    return () => {
      isCurrent = false;
    };
  }, [isNeeded]);
  return result;
}
