/** Turn limits to choose from. */

export const TURN_PRESETS = [
  { name: "Quick", turns: 4, description: "A first look with a few searches." },
  { name: "Standard", turns: 12, description: "Enough for most questions." },
  { name: "Deep", turns: 40, description: "Follows every lead." },
] as const;
