/** English texts of the server, said in the person's language from the codes that it sends beside them. */

export interface CodedText {
  code: string;
  parameters: Readonly<Record<string, string>>;
}

/** What texts name. */
type ParameterName =
  | "active"
  | "call"
  | "candidate"
  | "checker"
  | "children"
  | "claims"
  | "command"
  | "count"
  | "end"
  | "error"
  | "evidence"
  | "field"
  | "file"
  | "first"
  | "format"
  | "given"
  | "graph"
  | "groups"
  | "heading"
  | "host"
  | "id"
  | "judged"
  | "kind"
  | "last"
  | "least"
  | "megabytes"
  | "model"
  | "most"
  | "name"
  | "names"
  | "next"
  | "number"
  | "order"
  | "origin"
  | "other"
  | "pages"
  | "parent"
  | "passages"
  | "path"
  | "pattern"
  | "percent"
  | "policy"
  | "problem"
  | "provider"
  | "quote"
  | "read"
  | "reason"
  | "reasons"
  | "remedy"
  | "rule"
  | "run"
  | "seconds"
  | "sentences"
  | "seqs"
  | "size"
  | "sources"
  | "start"
  | "state"
  | "status"
  | "step"
  | "subgoal"
  | "text"
  | "title"
  | "tool"
  | "total"
  | "unverified"
  | "value"
  | "version"
  | "what"
  | "which"
  | "who"
  | "why"
  | "words";
type Parameters = Readonly<Record<ParameterName, string>>;

/** A text for each code. */
export type TextsByCode<Code extends string = string> = Readonly<Record<Code, (parameters: Parameters) => string>>;

/** Return a text of the server in the person's language. A text without a code that the page knows is unchanged. */
export function sayText(texts: TextsByCode, text: string, coded: CodedText | undefined | null): string {
  const say = coded && Object.hasOwn(texts, coded.code) ? texts[coded.code] : undefined;
  return coded && say ? say(withEllipses(coded.parameters)) : text;
}

/** Return whether each part of a text has a code that the page knows. Without parts nothing is known. */
export function knowsAll(texts: TextsByCode, parts: readonly CodedText[]): boolean {
  return parts.length > 0 && parts.every(({ code }) => Object.hasOwn(texts, code));
}

/** A parameter that a server leaves out is shown as an ellipsis. */
function withEllipses(parameters: CodedText["parameters"]): Parameters {
  return new Proxy(parameters, {
    get: (known, name) => (Object.hasOwn(known, name) ? known[String(name)] : "…"),
  }) as Parameters;
}
