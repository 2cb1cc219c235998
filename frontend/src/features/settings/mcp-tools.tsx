import { i18n } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { McpTool, McpToolChange } from "@/shared/api/settings";
import { Badge } from "@/shared/ui/badge";
import styles from "./installation.module.css";

/** The tools of a server. Their texts are those of the server. */
export function ToolList({ tools }: { tools: readonly McpTool[] }) {
  return (
    <ul className={styles.list}>
      {tools.map((tool) => (
        <li key={tool.name} className={styles.row}>
          <div className={styles.head}>
            <span className={styles.code} dir="auto">
              <bdi>{tool.name}</bdi>(<bdi>{tool.arguments.join(", ")}</bdi>)
            </span>
            <Badge tone={tool.is_allowed && !tool.problem ? "moss" : "neutral"}>
              {tool.is_allowed ? t`allowed` : t`not allowed`}
            </Badge>
          </div>
          {tool.description && <span dir="auto">{tool.description}</span>}
          {tool.problem && <span className={styles.problem}>{t`Runs cannot use it: ${tool.problem}.`}</span>}
        </li>
      ))}
    </ul>
  );
}

const CHANGES = { added: msg`added`, removed: msg`removed`, changed: msg`changed` };

/** What has changed since the tools were pinned, field by field. */
export function ToolChanges({ changes }: { changes: readonly McpToolChange[] }) {
  return (
    <section aria-label={t`Changes since the tools were pinned`}>
      {changes.map((change) => (
        <div key={change.tool} className={styles.row}>
          <div className={styles.head}>
            <span className={styles.code} dir="auto">
              {change.tool}
            </span>
            <Badge tone="sun">{i18n._(CHANGES[change.kind])}</Badge>
          </div>
          {change.kind === "changed" ? (
            <FieldChanges fields={change.fields} />
          ) : (
            <details>
              <summary>
                <Trans>Description and arguments</Trans>
              </summary>
              <FieldChanges fields={change.fields} />
            </details>
          )}
          {change.omitted_fields > 0 && (
            <span className={styles.note}>
              {plural(change.omitted_fields, { one: "# further field", other: "# further fields" })}
            </span>
          )}
        </div>
      ))}
    </section>
  );
}

function FieldChanges({ fields }: { fields: McpToolChange["fields"] }) {
  return (
    <dl className={styles.diff}>
      {fields.map(({ field, before, after }) => (
        <div key={field}>
          <dt dir="auto">{field}</dt>
          {before !== null && (
            <dd dir="auto">
              <del className={styles.before}>{before}</del>
            </dd>
          )}
          {after !== null && (
            <dd dir="auto">
              <ins className={styles.after}>{after}</ins>
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}
