/** Fields of a flat JSON schema, and the value typed into them. Pure. */

import { t } from "@lingui/core/macro";

type Schema = Record<string, unknown>;

export interface SchemaField {
  /** Empty if the value is not an object. */
  name: string;
  label: string;
  description: string;
  kind: "text" | "date" | "number" | "integer" | "boolean" | "choice";
  choices: unknown[];
  required: boolean;
  /** Text of the default. Empty if there is none. */
  initialText: string;
}

const MAX_FIELDS = 20;
const KIND_BY_TYPE: Record<string, SchemaField["kind"]> = {
  string: "text",
  number: "number",
  integer: "integer",
  boolean: "boolean",
};

/** Return the fields of a schema. `null` means that the schema is not flat; its value is written as JSON. */
export function parseFields(root: Schema): SchemaField[] | null {
  const schema = resolveRef(root, root);
  if (schema.type !== "object") {
    const field = parseField(root, "", root, true);
    return field && [field];
  }
  const properties = Object.entries(schemaOrEmpty(schema.properties));
  const required = Array.isArray(schema.required) ? schema.required : [];
  const fields = properties.map(([name, part]) => parseField(root, name, schemaOrEmpty(part), required.includes(name)));
  const parsed = fields.filter((field) => field !== null);
  const flat = parsed.length === properties.length && parsed.every((field) => field.name !== "");
  return flat && parsed.length > 0 && parsed.length <= MAX_FIELDS ? parsed : null;
}

function parseField(root: Schema, name: string, part: Schema, required: boolean): SchemaField | null {
  const schema = stripNull(root, resolveRef(root, part));
  const choices = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : [];
  const kind = choices.length > 0 ? "choice" : kindOf(schema);
  if (!kind || "oneOf" in schema || "anyOf" in schema || "allOf" in schema) return null;
  const field = {
    name,
    label: stringOrEmpty(schema.title ?? part.title) || name || t`Response`,
    description: stringOrEmpty(part.description ?? schema.description),
    kind,
    choices,
    required,
  };
  return { ...field, initialText: initialTextOf(kind, choices, part.default ?? schema.default) };
}

function kindOf(schema: Schema): SchemaField["kind"] | undefined {
  const kind = KIND_BY_TYPE[String(schema.type)];
  return kind === "text" && schema.format === "date" ? "date" : kind;
}

/** Return the value of the fields. `null` means that a required value is missing or is not a number. */
export function parseTypedValue(
  fields: readonly SchemaField[],
  typed: Readonly<Record<string, string>>,
): { value: unknown } | null {
  const entries: [string, unknown][] = [];
  for (const field of fields) {
    const text = typed[field.name] ?? field.initialText;
    if (text === "" && !field.required) continue;
    const value = parseFieldText(field, text);
    if (value === undefined) return null;
    entries.push([field.name, value]);
  }
  return { value: fields[0]?.name === "" ? entries[0]?.[1] : Object.fromEntries(entries) };
}

function parseFieldText(field: SchemaField, text: string): unknown {
  if (text === "") return undefined;
  if (field.kind === "text" || field.kind === "date") return text;
  if (field.kind === "boolean") return text === "true";
  if (field.kind === "choice") return field.choices[Number(text)];
  const number = Number(text);
  const fits = Number.isFinite(number) && (field.kind === "number" || Number.isInteger(number));
  return fits ? number : undefined;
}

function initialTextOf(kind: SchemaField["kind"], choices: readonly unknown[], value: unknown): string {
  if (value === undefined || value === null) return "";
  if (kind !== "choice") return String(value);
  const at = choices.indexOf(value);
  return at < 0 ? "" : String(at);
}

/** Follow references within the schema, at most five. */
function resolveRef(root: Schema, part: Schema): Schema {
  let current = part;
  for (let step = 0; step < 5 && typeof current.$ref === "string"; step++) {
    const path = current.$ref.split("/").slice(1);
    current = schemaOrEmpty(path.reduce<unknown>((at, name) => schemaOrEmpty(at)[name], root));
  }
  return current;
}

/** Remove the null option from a schema. A value that may be null is left out instead. */
function stripNull(root: Schema, schema: Schema): Schema {
  const options = (Array.isArray(schema.anyOf) ? schema.anyOf : []).map((one) => resolveRef(root, schemaOrEmpty(one)));
  const others = options.filter((one) => one.type !== "null");
  if (others.length !== 1 || options.length !== 2) return schema;
  const { anyOf: _, ...rest } = schema;
  return { ...rest, ...others[0] };
}

function stringOrEmpty(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function schemaOrEmpty(value: unknown): Schema {
  return typeof value === "object" && value !== null ? (value as Schema) : {};
}
