/** One element, in the language of the page and without the rest of the app. */

import { i18n } from "@lingui/core";
import { I18nProvider } from "@lingui/react";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";

export function renderElement(element: ReactNode) {
  return render(<I18nProvider i18n={i18n}>{element}</I18nProvider>);
}
