import { type FormEvent, useId } from "react";
import { useDraft } from "@/shared/ui/drafts";
import type { FormProps } from "./open-questions";
import { fieldsOf, type SchemaField, typedValue } from "./schema-fields";

interface FillSchemaProps extends FormProps {
  schema: Record<string, unknown>;
}

/** An answer that must fit a JSON schema: a field for each value, or JSON where the schema is not flat. */
export function FillSchema(props: FillSchemaProps) {
  const fields = fieldsOf(props.schema);
  return fields ? <Fields {...props} fields={fields} /> : <WriteJson {...props} />;
}

function Fields({ fields, draft, busy, onAnswer }: FillSchemaProps & { fields: SchemaField[] }) {
  const [typed, setTyped] = useDraft<Record<string, string>>(`${draft}.fields`, {});
  const found = typedValue(fields, typed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (found) onAnswer({ text: JSON.stringify(found.value) });
  };
  return (
    <form className="asked-fields" onSubmit={submit}>
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          text={typed[field.name] ?? field.start}
          onChange={(text) => setTyped({ ...typed, [field.name]: text })}
        />
      ))}
      <div className="asked-acts">
        <button type="submit" className="btn primary" disabled={busy || !found}>
          {busy ? "Answering…" : "Answer"}
        </button>
      </div>
    </form>
  );
}

interface FieldProps {
  field: SchemaField;
  text: string;
  onChange(text: string): void;
}

function Field({ field, text, onChange }: FieldProps) {
  const id = useId();
  const described = field.description ? `${id}-words` : undefined;
  return (
    <div className="asked-field">
      <label className="label" htmlFor={id}>
        {field.label}
        {!field.required && <span className="asked-hint"> optional</span>}
      </label>
      <Control id={id} described={described} field={field} text={text} onChange={onChange} />
      {field.description && (
        <p id={described} className="asked-hint">
          {field.description}
        </p>
      )}
    </div>
  );
}

function Control({ id, described, field, text, onChange }: FieldProps & { id: string; described?: string }) {
  const shared = { id, className: "field", value: text, required: field.required, "aria-describedby": described };
  if (field.kind === "choice" || field.kind === "boolean") {
    return (
      <select {...shared} onChange={(event) => onChange(event.target.value)}>
        <option value="">{field.required ? "Choose …" : "Leave out"}</option>
        {optionsOf(field).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    );
  }
  if (field.kind === "text") {
    return <textarea {...shared} rows={text.length > 80 ? 4 : 1} onChange={(event) => onChange(event.target.value)} />;
  }
  if (field.kind === "date")
    return <input {...shared} type="date" onChange={(event) => onChange(event.target.value)} />;
  const step = field.kind === "integer" ? 1 : "any";
  return <input {...shared} type="number" step={step} onChange={(event) => onChange(event.target.value)} />;
}

function optionsOf(field: SchemaField): [string, string][] {
  if (field.kind === "boolean") {
    return [
      ["true", "Yes"],
      ["false", "No"],
    ];
  }
  return field.choices.map((choice, at) => [String(at), typeof choice === "string" ? choice : JSON.stringify(choice)]);
}

function WriteJson({ question, schema, draft, busy, onAnswer }: FillSchemaProps) {
  const id = useId();
  const [text, setText] = useDraft(`${draft}.text`, "");
  const problem = text.trim() ? jsonProblem(text) : null;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() && !problem) onAnswer({ text: text.trim() });
  };
  return (
    <form className="asked-fields" onSubmit={submit}>
      <textarea
        className="field asked-json"
        aria-label={`Answer to: ${question.prompt}`}
        aria-invalid={problem !== null}
        aria-describedby={problem ? id : undefined}
        placeholder="JSON that fits the schema …"
        rows={Math.min(14, Math.max(4, text.split("\n").length))}
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {problem && (
        <p id={id} className="asked-problem">
          {problem}
        </p>
      )}
      <details className="asked-schema">
        <summary>What the answer must look like</summary>
        <pre className="asked-detail">{JSON.stringify(schema, null, 2)}</pre>
      </details>
      <div className="asked-acts">
        <button type="submit" className="btn primary" disabled={busy || !text.trim() || problem !== null}>
          {busy ? "Answering…" : "Answer"}
        </button>
      </div>
    </form>
  );
}

function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}
