import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { LanguageField } from "@/shared/language/language-field";
import { DENSITIES, DENSITY_NAMES, type Density, setDensity, useDensity } from "@/shared/ui/density";
import { Field, Select } from "@/shared/ui/field";
import { setTheme, THEME_NAMES, THEMES, type Theme, useTheme } from "@/shared/ui/theme";
import styles from "./section.module.css";

/** Theme, density and language of the page in this browser. */
export function AppearanceSection() {
  const theme = useTheme();
  const density = useDensity();
  return (
    <div className={styles.form}>
      <Field label={t`Theme`} description={t`This browser keeps theme, density and language.`}>
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
      <Field label={t`Density`} description={t`Compact rows show more of a list or a table at once.`}>
        {(control) => (
          <Select {...control} value={density} onChange={(event) => setDensity(event.target.value as Density)}>
            {DENSITIES.map((name) => (
              <option key={name} value={name}>
                {i18n._(DENSITY_NAMES[name])}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <LanguageField />
    </div>
  );
}
