/** Where a floating card goes. Pure. */

interface Box {
  left: number;
  top: number;
  bottom: number;
}

export interface Place {
  left: number;
  /** Exactly one of both is set. */
  top?: number;
  bottom?: number;
  /** What fits on that side. */
  maxHeight: number;
}

const GAP = 8;
const EDGE = 12;

/** Under the anchor where there is room, else above it; inside the window in any case. */
export function placeCard(
  anchor: Box,
  card: { width: number; height: number },
  view: { width: number; height: number },
): Place {
  const left = Math.max(EDGE, Math.min(anchor.left - 24, view.width - card.width - EDGE));
  const below = view.height - anchor.bottom;
  if (below > card.height + GAP + EDGE || below > anchor.top) {
    return { left, top: anchor.bottom + GAP, maxHeight: below - GAP - EDGE };
  }
  return { left, bottom: view.height - anchor.top + GAP, maxHeight: anchor.top - GAP - EDGE };
}
