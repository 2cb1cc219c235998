import { expect, test } from "vitest";
import { parseFields, parseTypedValue, type SchemaField } from "./schema-fields";

const fields = (schema: Record<string, unknown>) => parseFields(schema) as SchemaField[];

test("a value that is not an object is one field, whose value is the response", () => {
  expect(parseTypedValue(fields({ type: "string" }), { "": "words" })).toEqual({ value: "words" });
  expect(parseTypedValue(fields({ type: "boolean" }), { "": "false" })).toEqual({ value: false });
  expect(parseTypedValue(fields({ enum: [1, "1", null] }), { "": "2" })).toEqual({ value: null });
  expect(parseTypedValue(fields({ type: "number" }), {})).toBeNull();
});

test("a date is picked, and other formats are typed", () => {
  expect(fields({ type: "string", format: "date" })[0]?.kind).toBe("date");
  expect(fields({ type: "string", format: "uri" })[0]?.kind).toBe("text");
  expect(parseTypedValue(fields({ type: "string", format: "date" }), { "": "2026-01-31" })).toEqual({
    value: "2026-01-31",
  });
});

test("an empty optional value is omitted, and a default is filled in", () => {
  const schema = {
    type: "object",
    properties: { n: { type: "integer", default: 3 }, why: { type: "string" }, kind: { const: "a", default: "a" } },
    required: ["n"],
  };
  expect(parseTypedValue(fields(schema), {})).toEqual({ value: { n: 3, kind: "a" } });
  expect(parseTypedValue(fields(schema), { n: "", why: "so" })).toBeNull();
  expect(parseTypedValue(fields(schema), { n: "1.5" })).toBeNull();
  expect(parseTypedValue(fields(schema), { n: "0", kind: "" })).toEqual({ value: { n: 0 } });
});

test("references within the schema are resolved, except cycles", () => {
  const schema = {
    $ref: "#/$defs/Decision",
    $defs: {
      Decision: { type: "object", properties: { mood: { $ref: "#/$defs/Mood" } } },
      Mood: { enum: ["good", "bad"], title: "Mood" },
      me: { $ref: "#/$defs/me" },
    },
  };
  expect(fields(schema).map(({ label, choices }) => [label, choices])).toEqual([["Mood", ["good", "bad"]]]);
  expect(parseFields({ ...schema, $ref: "#/$defs/me" })).toBeNull();
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
  expect(parseFields(schema)).toBeNull();
});
