import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { graphsQuery } from "@/shared/api/installation";
import { Checkbox, Field, Input, Select } from "@/shared/ui/field";
import { GraphPicker } from "./graph-picker";
import { ModelPicker } from "./model-picker";
import styles from "./options.module.css";
import { FieldError, type OptionsProps, Section } from "./options-section";
import { QuestionPresets } from "./question-presets-bar";
import { ScopeOptions } from "./scope-options";
import type { Settings } from "./settings";

interface OptionsPanelProps extends OptionsProps {
  /** Whether documents are attached to the question. They replace the collections. */
  hasAttached: boolean;
  /** Replace all settings, as a saved way to ask does. */
  onReplace(settings: Settings): void;
  /** Id of a saved way to ask that is applied. `null` means none. */
  preset: string | null;
  onPresetApplied(): void;
}

/** Everything that a question can set, in the order in which people think of it. */
export function OptionsPanel({ settings, errors, onChange, hasAttached, ...presets }: OptionsPanelProps) {
  const options = { settings, errors, onChange };
  return (
    <div className={styles.panel}>
      <QuestionPresets settings={settings} {...presets} />
      <ScopeOptions {...options} hasAttached={hasAttached} />
      <GraphPicker {...options} />
      <ModelPicker {...options} />
      <LimitOptions {...options} />
      <ReportOptions {...options} />
      <InteractionOptions {...options} />
    </div>
  );
}

function LimitOptions({ settings, errors, onChange }: OptionsProps) {
  return (
    <Section title={t`Limits`}>
      <div className={styles.row}>
        <Field label={t`Maximum cost, $`} error={errors.usd}>
          {(control) => (
            <Input
              {...control}
              className="num"
              inputMode="decimal"
              value={settings.usd}
              placeholder={t`no limit`}
              onChange={(event) => onChange({ usd: event.target.value })}
            />
          )}
        </Field>
        <Field label={t`Maximum time, minutes`} error={errors.minutes}>
          {(control) => (
            <Input
              {...control}
              className="num"
              inputMode="decimal"
              value={settings.minutes}
              placeholder={t`no limit`}
              onChange={(event) => onChange({ minutes: event.target.value })}
            />
          )}
        </Field>
        <Field label={t`Maximum tokens`} error={errors.tokens}>
          {(control) => (
            <Input
              {...control}
              className="num"
              inputMode="numeric"
              value={settings.tokens}
              placeholder={t`no limit`}
              onChange={(event) => onChange({ tokens: event.target.value })}
            />
          )}
        </Field>
      </div>
      <p className={styles.note}>
        <Trans>At a limit, the run stops collecting and writes its report from what it has.</Trans>
      </p>
    </Section>
  );
}

function ReportOptions({ settings, errors, onChange }: OptionsProps) {
  return (
    <Section title={t`Report`}>
      <div className={styles.row}>
        <Field label={t`Length`} error={errors.length}>
          {(control) => (
            <Select
              {...control}
              value={settings.length}
              onChange={(event) => onChange({ length: event.target.value as Settings["length"] })}
            >
              <option value="">{t`As the question needs`}</option>
              <option value="brief">{t`Brief, about 200 words`}</option>
              <option value="standard">{t`Standard, 800 to 1,500 words`}</option>
              <option value="long">{t`Long, up to 10,000 words`}</option>
            </Select>
          )}
        </Field>
        <Field label={t`Language of the report`} error={errors.language}>
          {(control) => (
            <>
              <Input
                {...control}
                list="report-languages"
                autoComplete="off"
                spellCheck={false}
                value={settings.language}
                placeholder={t`that of the question`}
                onChange={(event) => onChange({ language: event.target.value })}
              />
              <datalist id="report-languages">
                {LANGUAGES.map((tag) => (
                  <option key={tag} value={tag} label={nameLanguage(tag)} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      </div>
      <Field
        label={t`Outline`}
        description={t`Headings, one per line, or other instructions on the form. They do not change what is cited.`}
        error={errors.template}
      >
        {(control) => (
          <textarea
            {...control}
            dir="auto"
            className="field"
            rows={3}
            value={settings.template}
            onChange={(event) => onChange({ template: event.target.value })}
          />
        )}
      </Field>
    </Section>
  );
}

const LANGUAGES = ["en", "zh", "es", "fr", "de", "pt-BR", "ja", "ko", "ar", "hi", "it", "nl", "pl", "ru", "tr", "uk"];

/** Return the name of a language in itself. */
function nameLanguage(tag: string): string {
  return new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
}

function InteractionOptions({ settings, errors, onChange }: OptionsProps) {
  const graphs = useQuery(graphsQuery);
  const graph = graphs.data?.find(({ name }) => name === settings.graph);
  const interactions = graph?.interactions ?? [];
  // The failure of the list of graphs is shown where a graph is chosen.
  if (graphs.error || !graph) return null;
  return (
    <Section title={t`Before it researches`}>
      {interactions.length === 0 && (
        <p className={styles.note}>
          <Trans>Runs of this graph begin at once and ask nothing.</Trans>
        </p>
      )}
      {interactions.includes("clarify") && (
        <Checkbox
          label={t`Ask me what is unclear`}
          description={t`A model may ask up to three questions before it makes its plan. The run waits for your answer.`}
          checked={settings.clarify}
          onChange={(clarify) => onChange({ clarify })}
        />
      )}
      {interactions.includes("plan_review") && (
        <Checkbox
          label={t`Show me the plan first`}
          description={t`You approve, edit or comment on the parts into which the question is split. The run waits until then.`}
          checked={settings.reviewPlan}
          onChange={(reviewPlan) => onChange({ reviewPlan })}
        />
      )}
      <FieldError text={errors.reviewPlan} />
    </Section>
  );
}
