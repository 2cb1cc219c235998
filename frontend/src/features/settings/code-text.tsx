/** A text of the server in which commands and variables are between backticks. They are shown as code. */
export function CodeText({ children }: { children: string }) {
  const parts = children.split("`");
  return parts.map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text have no other identity
    index % 2 === 1 && index < parts.length - 1 ? <code key={index}>{part}</code> : <span key={index}>{part}</span>,
  );
}
