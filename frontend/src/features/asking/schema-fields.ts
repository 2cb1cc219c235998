/** The fields of a flat JSON schema, and the value that was typed into them. Pure. */

type Schema = Record<string, unknown>;

export interface SchemaField {
  /** Empty: the value itself, which is no object. */
  name: string;
  label: string;
  description: string;
  kind: "text" | "date" | "number" | "integer" | "boolean" | "choice";
  choices: unknown[];
  required: boolean;
  /** As it is typed. Empty: none. */
  start: string;
}

const MAX_FIELDS = 20;
const KINDS: Record<string, SchemaField["kind"]> = {
  string: "text",
  number: "number",
  integer: "integer",
  boolean: "boolean",
};

/** Return the fields of a schema. null: it is not flat, and its value is written as JSON. */
export function fieldsOf(root: Schema): SchemaField[] | null {
  const schema = resolved(root, root);
  if (schema.type !== "object") {
    const field = fieldOf(root, "", root, true);
    return field && [field];
  }
  const properties = Object.entries(asSchema(schema.properties));
  const required = Array.isArray(schema.required) ? schema.required : [];
  const fields = properties.map(([name, part]) => fieldOf(root, name, asSchema(part), required.includes(name)));
  const known = fields.filter((field) => field !== null);
  const flat = known.length === properties.length && known.every((field) => field.name !== "");
  return flat && known.length > 0 && known.length <= MAX_FIELDS ? known : null;
}

function fieldOf(root: Schema, name: string, part: Schema, required: boolean): SchemaField | null {
  const schema = withoutNull(root, resolved(root, part));
  const choices = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : [];
  const kind = choices.length > 0 ? "choice" : kindOf(schema);
  if (!kind || "oneOf" in schema || "anyOf" in schema || "allOf" in schema) return null;
  const field = {
    name,
    label: words(schema.title ?? part.title) || name || "Answer",
    description: words(part.description ?? schema.description),
    kind,
    choices,
    required,
  };
  return { ...field, start: startOf(kind, choices, part.default ?? schema.default) };
}

function kindOf(schema: Schema): SchemaField["kind"] | undefined {
  const kind = KINDS[String(schema.type)];
  return kind === "text" && schema.format === "date" ? "date" : kind;
}

/** Return the value of the fields. null: something required is missing, or is no number. */
export function typedValue(
  fields: readonly SchemaField[],
  typed: Readonly<Record<string, string>>,
): { value: unknown } | null {
  const found: [string, unknown][] = [];
  for (const field of fields) {
    const text = typed[field.name] ?? field.start;
    if (text === "" && !field.required) continue;
    const value = read(field, text);
    if (value === undefined) return null;
    found.push([field.name, value]);
  }
  return { value: fields[0]?.name === "" ? found[0]?.[1] : Object.fromEntries(found) };
}

function read(field: SchemaField, text: string): unknown {
  if (text === "") return undefined;
  if (field.kind === "text" || field.kind === "date") return text;
  if (field.kind === "boolean") return text === "true";
  if (field.kind === "choice") return field.choices[Number(text)];
  const number = Number(text);
  const fits = Number.isFinite(number) && (field.kind === "number" || Number.isInteger(number));
  return fits ? number : undefined;
}

function startOf(kind: SchemaField["kind"], choices: readonly unknown[], value: unknown): string {
  if (value === undefined || value === null) return "";
  if (kind !== "choice") return String(value);
  const at = choices.indexOf(value);
  return at < 0 ? "" : String(at);
}

/** Follow references within the schema, a few at most. */
function resolved(root: Schema, part: Schema): Schema {
  let found = part;
  for (let step = 0; step < 5 && typeof found.$ref === "string"; step++) {
    const path = found.$ref.split("/").slice(1);
    found = asSchema(path.reduce<unknown>((at, name) => asSchema(at)[name], root));
  }
  return found;
}

/** A value that may be null is left out instead. */
function withoutNull(root: Schema, schema: Schema): Schema {
  const options = (Array.isArray(schema.anyOf) ? schema.anyOf : []).map((one) => resolved(root, asSchema(one)));
  const others = options.filter((one) => one.type !== "null");
  if (others.length !== 1 || options.length !== 2) return schema;
  const { anyOf: _, ...rest } = schema;
  return { ...rest, ...others[0] };
}

function words(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function asSchema(value: unknown): Schema {
  return typeof value === "object" && value !== null ? (value as Schema) : {};
}
