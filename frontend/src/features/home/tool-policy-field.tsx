import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { toolPoliciesQuery } from "@/shared/api/settings";
import { Link } from "@/shared/routing/routing";
import { Field, Select } from "@/shared/ui/field";
import { Loaded } from "@/shared/ui/loaded";
import styles from "./options.module.css";
import type { OptionsProps } from "./options-section";
import { validateToolPolicy } from "./tool-policy";

/** The stored tool policies to choose from. Without any, a way to the settings that store one. */
export function ToolPolicyField({ settings, errors, onChange }: OptionsProps) {
  const policies = useQuery(toolPoliciesQuery);
  const selected = settings.toolPolicy;
  return (
    <Loaded query={policies} label={t`the tool policies`}>
      {(stored) => {
        if (stored.length === 0 && !selected) return <NoPolicies />;
        return (
          <Field
            label={t`Tool policy`}
            description={t`A stored policy replaces the default: a call that none of its rules allows is denied.`}
            error={errors.toolPolicy ?? validateToolPolicy(settings, stored) ?? ""}
          >
            {(control) => (
              <Select {...control} value={selected} onChange={(event) => onChange({ toolPolicy: event.target.value })}>
                <option value="">{t`The default`}</option>
                {stored.map(({ name, policy }) => (
                  <option key={name} value={name} disabled={policy === null}>
                    {policy === null ? t`${name} (this version of Offing cannot read it)` : name}
                  </option>
                ))}
                {selected && !stored.some(({ name }) => name === selected) && (
                  <option value={selected} disabled>
                    {t`${selected} (no longer stored)`}
                  </option>
                )}
              </Select>
            )}
          </Field>
        );
      }}
    </Loaded>
  );
}

function NoPolicies() {
  return (
    <p className={styles.note}>
      <Trans>
        The default tool policy decides each call of a tool.{" "}
        <Link to="/settings/$section" params={{ section: "tool-policies" }}>
          Write your own
        </Link>
      </Trans>
    </p>
  );
}
