import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type FormEvent, useId } from "react";
import { requestTexts } from "@/shared/texts/request-texts";
import { useDraft } from "@/shared/ui/drafts";
import type { ResponseFormProps } from "./pending-input-requests";
import { parseFields, parseTypedValue, type SchemaField } from "./schema-fields";

interface SchemaFormProps extends ResponseFormProps {
  schema: Record<string, unknown>;
}

/** A response that must match a JSON schema: one field per value, or JSON if the schema is not flat. */
export function SchemaForm(props: SchemaFormProps) {
  const fields = parseFields(props.schema);
  return fields ? <FieldsForm {...props} fields={fields} /> : <JsonForm {...props} />;
}

function FieldsForm({ fields, draft, busy, onRespond }: SchemaFormProps & { fields: SchemaField[] }) {
  const [typed, setTyped] = useDraft<Record<string, string>>(`${draft}.fields`, {});
  const parsed = parseTypedValue(fields, typed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (parsed) onRespond({ text: JSON.stringify(parsed.value) });
  };
  return (
    <form className="input-request-fields" onSubmit={submit}>
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          text={typed[field.name] ?? field.initialText}
          onChange={(text) => setTyped({ ...typed, [field.name]: text })}
        />
      ))}
      <div className="input-request-actions">
        <button type="submit" className="btn primary" disabled={busy || !parsed}>
          {busy ? t`Sending…` : t`Send response`}
        </button>
      </div>
    </form>
  );
}

interface SchemaFieldProps {
  field: SchemaField;
  text: string;
  onChange(text: string): void;
}

function Field({ field, text, onChange }: SchemaFieldProps) {
  const id = useId();
  const descriptionId = field.description ? `${id}-description` : undefined;
  return (
    <div className="input-request-field">
      <label dir="auto" className="label" htmlFor={id}>
        {field.label}
        {!field.required && (
          <span className="input-request-note">
            {" "}
            <Trans>optional</Trans>
          </span>
        )}
      </label>
      <FieldControl id={id} descriptionId={descriptionId} field={field} text={text} onChange={onChange} />
      {field.description && (
        <p dir="auto" id={descriptionId} className="input-request-note">
          {field.description}
        </p>
      )}
    </div>
  );
}

function FieldControl({
  id,
  descriptionId,
  field,
  text,
  onChange,
}: SchemaFieldProps & { id: string; descriptionId?: string }) {
  const shared = { id, className: "field", value: text, required: field.required, "aria-describedby": descriptionId };
  if (field.kind === "choice" || field.kind === "boolean") {
    return (
      <select {...shared} onChange={(event) => onChange(event.target.value)}>
        <option value="">{field.required ? t`Choose…` : t`Omit`}</option>
        {listOptions(field).map(([value, label]) => (
          <option key={value} dir="auto" value={value}>
            {label}
          </option>
        ))}
      </select>
    );
  }
  if (field.kind === "text") {
    return (
      <textarea
        dir="auto"
        {...shared}
        rows={text.length > 80 ? 4 : 1}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  }
  if (field.kind === "date")
    return <input {...shared} type="date" onChange={(event) => onChange(event.target.value)} />;
  const step = field.kind === "integer" ? 1 : "any";
  return <input {...shared} type="number" step={step} onChange={(event) => onChange(event.target.value)} />;
}

function listOptions(field: SchemaField): [string, string][] {
  if (field.kind === "boolean") {
    return [
      ["true", t`Yes`],
      ["false", t`No`],
    ];
  }
  return field.choices.map((choice, at) => [String(at), typeof choice === "string" ? choice : JSON.stringify(choice)]);
}

function JsonForm({ request, schema, draft, busy, onRespond }: SchemaFormProps) {
  const id = useId();
  const [text, setText] = useDraft(`${draft}.text`, "");
  const problem = text.trim() ? findJsonError(text) : null;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() && !problem) onRespond({ text: text.trim() });
  };
  return (
    <form className="input-request-fields" onSubmit={submit}>
      <textarea
        className="field input-request-json"
        aria-label={t`Response to: ${requestTexts(request).prompt}`}
        aria-invalid={problem !== null}
        aria-describedby={problem ? id : undefined}
        placeholder={t`JSON that matches the schema…`}
        rows={Math.min(14, Math.max(4, text.split("\n").length))}
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {problem && (
        <p id={id} className="input-request-error">
          {problem}
        </p>
      )}
      <details className="input-request-schema">
        <summary>
          <Trans>Required format of the response</Trans>
        </summary>
        <pre className="input-request-detail">{JSON.stringify(schema, null, 2)}</pre>
      </details>
      <div className="input-request-actions">
        <button type="submit" className="btn primary" disabled={busy || !text.trim() || problem !== null}>
          {busy ? t`Sending…` : t`Send response`}
        </button>
      </div>
    </form>
  );
}

function findJsonError(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return t`Invalid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}
