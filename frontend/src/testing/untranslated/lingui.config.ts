/** A page with one text that French lacks. `catalogs.test.ts` builds it. */
export default {
  sourceLocale: "en",
  locales: ["en", "fr"],
  catalogs: [{ path: "<rootDir>/{locale}", include: ["."] }],
};
