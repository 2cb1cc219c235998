/** Turn limits to choose from. */

import { msg } from "@lingui/core/macro";
import { TURNS_BY_DEPTH } from "@/shared/api/depth";

export const TURN_PRESETS = [
  { name: msg`Quick`, turns: TURNS_BY_DEPTH.quick, description: msg`A first look with a few searches.` },
  { name: msg`Standard`, turns: TURNS_BY_DEPTH.standard, description: msg`Enough for most questions.` },
  {
    name: msg`Deep`,
    turns: TURNS_BY_DEPTH.deep,
    description: msg`Covers every part, then what is contested or missing, until it finds nothing new.`,
  },
  {
    name: msg`Marathon`,
    turns: 256,
    description: msg`For hours of work on a large subject. It ends when it finds nothing new.`,
  },
] as const;
