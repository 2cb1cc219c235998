/** Return the given class names as one value of `className`. Names that are `false`, `undefined` or empty are left out. */
export function classNames(...names: (string | false | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}
