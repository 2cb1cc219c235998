/** The languages of the page, and which of them a reader gets. Pure. */

/** The languages. A key is a BCP 47 tag, and the name of a catalog in `src/locales`. */
// Not translated: each language has its own name.
export const LANGUAGES = { en: "English", "zh-Hans": "简体中文" } as const;

export type Language = keyof typeof LANGUAGES;

export function isLanguage(tag: string | null): tag is Language {
  return tag !== null && Object.hasOwn(LANGUAGES, tag);
}

/**
 * Return the first wanted language that the page has, otherwise English. `wanted` are BCP 47 tags, most preferred
 * first. A tag matches if its language and script do, so `zh-CN` is Simplified Chinese and `zh-TW` is not.
 */
export function chooseLanguage(wanted: readonly string[]): Language {
  const languages = Object.keys(LANGUAGES).filter(isLanguage);
  for (const tag of wanted) {
    const match = languages.find((language) => languageAndScript(language) === languageAndScript(tag));
    if (match) return match;
  }
  return "en";
}

/** Return the language with its likely script, such as `zh-Hans` for `zh-CN`. An invalid tag is returned unchanged. */
function languageAndScript(tag: string): string {
  try {
    const { language, script } = new Intl.Locale(tag).maximize();
    return `${language}-${script}`;
  } catch {
    // A browser extension may set any text.
    return tag;
  }
}
