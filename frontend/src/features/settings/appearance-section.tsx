import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { LanguageField } from "@/shared/language/language-field";
import { Field, Select } from "@/shared/ui/field";
import { setTheme, THEME_NAMES, THEMES, type Theme, useTheme } from "@/shared/ui/theme";
import styles from "./section.module.css";

/** Theme and language of the page in this browser. */
export function AppearanceSection() {
  const theme = useTheme();
  return (
    <div className={styles.form}>
      <Field label={t`Theme`} description={t`This browser keeps theme and language.`}>
        {(control) => (
          <Select {...control} value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
            {THEMES.map((name) => (
              <option key={name} value={name}>
                {i18n._(THEME_NAMES[name])}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <LanguageField />
    </div>
  );
}
