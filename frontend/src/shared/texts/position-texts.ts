/** Where in its source a citation is. */

import { t } from "@lingui/core/macro";
import type { Schemas } from "../api/client";
import { joinParts } from "../format/lists";
import { knowsAll, sayText, type TextsByCode } from "./coded-text";

export const POSITION_TEXTS: TextsByCode<Schemas["PositionTextCode"]> = {
  erased: () => t`The source was deleted from the library.`,
  page: ({ number }) => t`page ${number}`,
  section: ({ heading }) => t`section “${heading}”`,
  line: ({ first }) => t`line ${first}`,
  lines: ({ first, last }) => t`lines ${first} to ${last}`,
  near_beginning: () => t`near the beginning`,
  near_end: () => t`near the end`,
  part_of_way: ({ percent }) => t`about ${percent} % of the way through`,
};

interface Cited {
  position: string;
  position_texts: Schemas["PositionTextOut"][];
}

/** Return where in its source a citation is. Empty means that this is unknown. */
export function positionText({ position, position_texts: parts }: Cited): string {
  if (!knowsAll(POSITION_TEXTS, parts)) return position;
  return joinParts(parts.map((part) => sayText(POSITION_TEXTS, "", part)));
}
