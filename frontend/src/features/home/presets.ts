/** Turn limits to choose from. */

import { TURNS_BY_DEPTH } from "@/shared/api/depth";

export const TURN_PRESETS = [
  { name: "Quick", turns: TURNS_BY_DEPTH.quick, description: "A first look with a few searches." },
  { name: "Standard", turns: TURNS_BY_DEPTH.standard, description: "Enough for most questions." },
  {
    name: "Deep",
    turns: TURNS_BY_DEPTH.deep,
    description: "Covers every part, then what is contested or missing, until it finds nothing new.",
  },
] as const;
