import { expect, test } from "vitest";
import { fieldsOf, type SchemaField, typedValue } from "./schema-fields";

const fields = (schema: Record<string, unknown>) => fieldsOf(schema) as SchemaField[];

test("a value that is no object is one field, whose value is the answer", () => {
  expect(typedValue(fields({ type: "string" }), { "": "words" })).toEqual({ value: "words" });
  expect(typedValue(fields({ type: "boolean" }), { "": "false" })).toEqual({ value: false });
  expect(typedValue(fields({ enum: [1, "1", null] }), { "": "2" })).toEqual({ value: null });
  expect(typedValue(fields({ type: "number" }), {})).toBeNull();
});

test("a date is picked, and other formats are typed", () => {
  expect(fields({ type: "string", format: "date" })[0]?.kind).toBe("date");
  expect(fields({ type: "string", format: "uri" })[0]?.kind).toBe("text");
  expect(typedValue(fields({ type: "string", format: "date" }), { "": "2026-01-31" })).toEqual({ value: "2026-01-31" });
});

test("what is optional and empty is left out, and a default is there from the start", () => {
  const schema = {
    type: "object",
    properties: { n: { type: "integer", default: 3 }, why: { type: "string" }, kind: { const: "a", default: "a" } },
    required: ["n"],
  };
  expect(typedValue(fields(schema), {})).toEqual({ value: { n: 3, kind: "a" } });
  expect(typedValue(fields(schema), { n: "", why: "so" })).toBeNull();
  expect(typedValue(fields(schema), { n: "1.5" })).toBeNull();
  expect(typedValue(fields(schema), { n: "0", kind: "" })).toEqual({ value: { n: 0 } });
});

test("references within the schema are followed, and circles are not", () => {
  const schema = {
    $ref: "#/$defs/Decision",
    $defs: {
      Decision: { type: "object", properties: { mood: { $ref: "#/$defs/Mood" } } },
      Mood: { enum: ["good", "bad"], title: "Mood" },
      me: { $ref: "#/$defs/me" },
    },
  };
  expect(fields(schema).map(({ label, choices }) => [label, choices])).toEqual([["Mood", ["good", "bad"]]]);
  expect(fieldsOf({ ...schema, $ref: "#/$defs/me" })).toBeNull();
});

test.each([
  {},
  { type: "array" },
  { type: "object" },
  { type: "object", properties: { a: { type: "array" } } },
  { type: "object", properties: { a: { type: "object", properties: {} } } },
  { type: "object", properties: { a: { type: ["string", "null"] } } },
  { type: "object", properties: { "": { type: "string" } } },
  { oneOf: [{ type: "string" }, { type: "number" }] },
  { type: "object", properties: Object.fromEntries([...Array(21)].map((_, n) => [`f${n}`, { type: "string" }])) },
])("a schema that is not flat has no fields: %j", (schema) => {
  expect(fieldsOf(schema)).toBeNull();
});
