import { t } from "@lingui/core/macro";
import { useMutation } from "@tanstack/react-query";
import { Field, Select } from "../ui/field";
import { ProblemNote } from "../ui/problem-note";
import { type LanguageChoice, useLanguageChoice } from "./language";
import { LANGUAGES } from "./languages";

/** The language of the page in this browser. */
export function LanguageField() {
  const [choice, setChoice] = useLanguageChoice();
  const change = useMutation({ mutationFn: setChoice });
  return (
    <>
      <Field label={t`Language`}>
        {(control) => (
          <Select
            {...control}
            value={choice}
            disabled={change.isPending}
            onChange={(event) => change.mutate(event.target.value as LanguageChoice)}
          >
            <option value="browser">{t`As the browser`}</option>
            {Object.entries(LANGUAGES).map(([language, name]) => (
              <option key={language} value={language} lang={language}>
                {name}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <ProblemNote error={change.error} />
    </>
  );
}
