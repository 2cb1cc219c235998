/** Addresses of the views: which there are, how each is written, and how its parameters are read. Pure. */

/** The paths of the views, with the type of the parameters that each has after `?`. The app adds its own. */
// biome-ignore lint/suspicious/noEmptyInterface: the app extends it, so that every link is checked against its routes.
export interface Routes {}

/** Names of the variable parts of a path: `runId` in `/runs/$runId`. */
type PartNames<Path extends string> = Path extends `${string}$${infer Name}/${infer Rest}`
  ? Name | PartNames<Rest>
  : Path extends `${string}$${infer Name}`
    ? Name
    : never;

type TargetOf<Path extends keyof Routes & string> = {
  to: Path;
  /** Absent: the address has no parameters. */
  search?: Routes[Path];
} & ([PartNames<Path>] extends [never] ? { params?: never } : { params: Record<PartNames<Path>, string> });

/** A view to open, with the variable parts of its path and its parameters. */
export type Target = { [Path in keyof Routes & string]: TargetOf<Path> }[keyof Routes & string];

/** Values of parameters as an address has them: numbers, truth values and lists are JSON, all else is text. */
export type Search = Record<string, unknown>;

function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // Most values are texts without quotation marks.
  }
}

/** Return the parameters of an address, which starts with `?` or is empty. The last of several values of a name counts. */
export function parseSearch(text: string): Search {
  return Object.fromEntries([...new URLSearchParams(text)].map(([name, value]) => [name, readValue(value)]));
}

/** Return a value so that `readValue` returns it again. A text that is also JSON, such as a number, needs quotation marks. */
function writeValue(value: unknown): string {
  return typeof value === "string" && readValue(value) === value ? value : JSON.stringify(value);
}

/** Return the parameters as they are in an address, with `?` before them, or nothing. Undefined ones are left out. */
export function writeSearch(search: object): string {
  const given = Object.entries(search).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, writeValue(value)])).toString();
  return text && `?${text}`;
}

/** Return the address of a view, without that of the server. */
export function writeAddress({ to, params, search }: Target): string {
  const parts: Record<string, string> = params ?? {};
  const path = to.replace(/\$(\w+)/g, (_, name: string) => encodeURIComponent(parts[name] ?? ""));
  return path + writeSearch(search ?? {});
}
