/** How deep a run may go. Also used where a person digs deeper. */

export const PRESETS = [
  { name: "Quick", turns: 4, says: "A first look: a few searches." },
  { name: "Standard", turns: 12, says: "Enough for most questions." },
  { name: "Deep", turns: 40, says: "Follows every lead it finds." },
] as const;
