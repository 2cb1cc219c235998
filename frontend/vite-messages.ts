/** Vite plugins of the translated texts. */

import { transformAsync } from "@babel/core";
import macros from "@lingui/babel-plugin-lingui-macro";
import { lingui } from "@lingui/vite-plugin";
import type { Plugin } from "vite";

/** Replace the macros of Lingui (`t`, `plural`, `Trans`). Only files that use them pass through Babel. */
function messageMacros(): Plugin {
  return {
    name: "offing-message-macros",
    enforce: "pre",
    transform: {
      filter: { id: /\/src\/.*\.tsx?$/, code: /@lingui\/(core|react)\/macro/ },
      async handler(code, id) {
        const result = await transformAsync(code, {
          filename: id,
          babelrc: false,
          configFile: false,
          sourceMaps: true,
          parserOpts: { plugins: id.endsWith("x") ? ["typescript", "jsx"] : ["typescript"] },
          plugins: [macros],
        });
        return result?.code ? { code: result.code, map: result.map ?? null } : null;
      },
    },
  };
}

/**
 * Translate the texts of the code. The build fails if a translation is missing or invalid. `configPath` is the file of
 * another set of languages; without it, the languages are those of `lingui.config.ts`.
 */
export function messages(configPath?: string): Plugin[] {
  const strict = { failOnMissing: true, failOnCompileError: true };
  return [messageMacros(), ...lingui(configPath ? { ...strict, configPath } : strict)];
}
