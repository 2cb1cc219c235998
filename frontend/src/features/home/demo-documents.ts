/** Documents for a first question. They are written for Offing and are under its license. */

import type { PickedFolder } from "@/shared/upload/read-drop";
import towers from "./demo/eddystone-towers.md?raw";
import fresnel from "./demo/fresnel.md?raw";
import smeaton from "./demo/smeaton.md?raw";

const TEXTS = { "eddystone-towers.md": towers, "fresnel.md": fresnel, "smeaton.md": smeaton };

// Not translated: the demo documents are in English, and so is a question that they answer.
export const DEMO_QUESTION = "Why did the third tower on the Eddystone rocks outlast the first two?";

/** Return the demo documents as the folder that is uploaded. Its name is that of the collection. */
export function readDemoDocuments(): PickedFolder[] {
  const files = Object.entries(TEXTS).map(([name, text]) => ({
    name,
    file: new File([text], name, { type: "text/markdown" }),
  }));
  return [{ folder: "lighthouses", files }];
}
