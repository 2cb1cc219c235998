import type { LinguiConfig } from "@lingui/conf";
import { formatter } from "@lingui/format-po";

/** Languages of the page and their catalogs. The texts of the code are English. */
const config: LinguiConfig = {
  sourceLocale: "en",
  locales: ["en", "zh-Hans"],
  catalogs: [
    {
      path: "<rootDir>/src/locales/{locale}",
      include: ["src"],
      exclude: ["**/*.test.*", "src/testing/**", "src/stories/**"],
    },
  ],
  // Without line numbers and dates, a catalog changes only when its texts do.
  format: formatter({ lineNumbers: false, customHeaderAttributes: {} }),
  orderBy: "message",
};

export default config;
