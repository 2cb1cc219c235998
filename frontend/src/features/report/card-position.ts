/** Position of a floating card. Pure. */

interface Box {
  left: number;
  top: number;
  bottom: number;
}

export interface CardPosition {
  left: number;
  /** Exactly one of `top` and `bottom` is set. */
  top?: number;
  bottom?: number;
  /** Maximum height on that side. */
  maxHeight: number;
}

const GAP_PX = 8;
const EDGE_PX = 12;

/** Position the card below the anchor if there is room, otherwise above it, and always inside the window. */
export function positionCard(
  anchor: Box,
  card: { width: number; height: number },
  view: { width: number; height: number },
): CardPosition {
  const left = Math.max(EDGE_PX, Math.min(anchor.left - 24, view.width - card.width - EDGE_PX));
  const below = view.height - anchor.bottom;
  if (below > card.height + GAP_PX + EDGE_PX || below > anchor.top) {
    return { left, top: anchor.bottom + GAP_PX, maxHeight: below - GAP_PX - EDGE_PX };
  }
  return { left, bottom: view.height - anchor.top + GAP_PX, maxHeight: anchor.top - GAP_PX - EDGE_PX };
}
