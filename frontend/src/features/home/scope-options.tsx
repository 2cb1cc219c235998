import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { mcpServersQuery } from "@/shared/api/installation";
import { collectionLabel, collectionsQuery } from "@/shared/api/library";
import { Checkbox, Field } from "@/shared/ui/field";
import { Failure, Loaded } from "@/shared/ui/loaded";
import { Chip } from "./documents-field";
import styles from "./options.module.css";
import { FieldError, type OptionsProps, Section } from "./options-section";
import { ToolPolicyField } from "./tool-policy-field";

interface ScopeOptionsProps extends OptionsProps {
  /** Whether documents are attached to the question. They replace the collections. */
  hasAttached: boolean;
}

/** What the run may read and use: documents, the web within domains, code, MCP servers; or nothing outside. */
export function ScopeOptions({ settings, errors, hasAttached, onChange }: ScopeOptionsProps) {
  const servers = useQuery(mcpServersQuery);
  const goOffline = (offline: boolean) => onChange(offline ? { offline, web: false, mcp: [] } : { offline });
  return (
    <>
      <Section title={t`Documents`}>
        {hasAttached ? (
          <p>
            <Trans>Those attached to the question</Trans>
          </p>
        ) : (
          <CollectionChips settings={settings} onChange={onChange} />
        )}
        <FieldError text={errors.collections} />
      </Section>
      <Section title={t`Outside the library`}>
        <Checkbox
          label={t`Search the web and read public pages`}
          checked={settings.web}
          disabled={settings.offline}
          onChange={(web) => onChange({ web })}
        />
        {settings.web && (
          <div className={styles.row}>
            <DomainField
              label={t`Only these domains`}
              value={settings.onlyDomains}
              error={errors.onlyDomains}
              placeholder={t`all domains`}
              onChange={(onlyDomains) => onChange({ onlyDomains })}
            />
            <DomainField
              label={t`Never these domains`}
              value={settings.excludedDomains}
              error={errors.excludedDomains}
              placeholder={t`none`}
              onChange={(excludedDomains) => onChange({ excludedDomains })}
            />
          </div>
        )}
        <Checkbox
          label={t`Run Python code in a sandbox`}
          description={t`The code can access only the inputs passed to it.`}
          checked={settings.code}
          onChange={(code) => onChange({ code })}
        />
        {withSelected(servers.data, settings.mcp).map(({ name }) => (
          <Checkbox
            key={name}
            label={<Trans>Use the tools of {name}</Trans>}
            description={t`An MCP server that the operator allows. Arguments of its tools are sent to it.`}
            checked={settings.mcp.includes(name)}
            disabled={settings.offline}
            onChange={() => onChange({ mcp: toggleName(settings.mcp, name) })}
          />
        ))}
        <Failure query={servers} />
        <FieldError text={errors.mcp} />
        <Checkbox
          label={t`Offline only`}
          description={t`Nothing leaves this machine. The server rejects the question if a model, a tool or the search of the library needs the network.`}
          checked={settings.offline}
          onChange={goOffline}
        />
        <FieldError text={errors.offline} />
        <ToolPolicyField settings={settings} errors={errors} onChange={onChange} />
      </Section>
    </>
  );
}

interface DomainFieldProps {
  label: string;
  value: string;
  error: string | undefined;
  placeholder: string;
  onChange(value: string): void;
}

/** The collections that the run reads. None selected means all documents. */
function CollectionChips({ settings, onChange }: Pick<OptionsProps, "settings" | "onChange">) {
  const collections = useQuery(collectionsQuery);
  return (
    <Loaded query={collections} label={t`the collections`}>
      {(listed) => (
        <div className={styles.chips}>
          <Chip isOn={settings.collections.length === 0} onPress={() => onChange({ collections: [] })}>
            <Trans>All documents</Trans>{" "}
            <span className="num">{listed.reduce((sum, { count }) => sum + count, 0)}</span>
          </Chip>
          {withSelected(listed, settings.collections).map(({ name, count }) => (
            <Chip
              key={name}
              isOn={settings.collections.includes(name)}
              title={name}
              onPress={() => onChange({ collections: toggleName(settings.collections, name) })}
            >
              <bdi>{collectionLabel(name)}</bdi> <span className="num">{count}</span>
            </Chip>
          ))}
        </div>
      )}
    </Loaded>
  );
}

function DomainField({ label, value, error, placeholder, onChange }: DomainFieldProps) {
  return (
    <Field label={label} description={t`Such as example.org, docs.example.net. Subdomains are included.`} error={error}>
      {(control) => (
        <textarea
          {...control}
          dir="ltr"
          className="field"
          rows={2}
          spellCheck={false}
          autoCapitalize="off"
          value={value}
          placeholder={placeholder}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

/** Return the list with the selected names that it lacks, so that a selection can always be seen and removed. */
function withSelected<T extends { name: string; count?: number }>(
  options: readonly T[] | undefined,
  selected: readonly string[],
): { name: string; count?: number }[] {
  // Of a collection whose documents are all missing, nothing can be read.
  const listed = options ? options.filter(({ count }) => count !== 0) : [];
  const missingNames = selected.filter((name) => !listed.some((one) => one.name === name));
  return [...listed, ...missingNames.map((name) => ({ name }))];
}

function toggleName(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}
