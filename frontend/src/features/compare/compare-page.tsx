export function ComparePage(_: { first: string | null; second: string | null }) {
  return null;
}
