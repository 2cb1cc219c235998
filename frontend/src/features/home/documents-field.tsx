import { type ReactNode, useRef } from "react";
import { collectionName } from "@/shared/api/library";
import { Failure, type Loadable, together } from "@/shared/ui/loaded";
import { type Picked, readField } from "@/shared/upload/read-drop";

interface DocumentsFieldProps {
  collections: Loadable<readonly { name: string; count: number }[]>;
  chosen: readonly string[];
  /** What will be read of the documents attached to this question, which take the place of collections. `null`: none. */
  attached: string | null;
  /** Whether the run may leave the library. */
  web: boolean;
  onChoose(chosen: string[]): void;
  onWeb(web: boolean): void;
  /** Whether the run may run code. */
  code: boolean;
  onCode(code: boolean): void;
  /** Other people's tools that the operator allows, and those that the run may use. */
  servers: Loadable<readonly { name: string }[]>;
  mcp: readonly string[];
  onMcp(mcp: string[]): void;
  onPick(picked: Picked[]): void;
}

/**
 * What the run may see: the attached documents, else the chosen collections, else all of the library; and the web, code, and
 * other people's servers.
 */
export function DocumentsField(props: DocumentsFieldProps) {
  const { collections, chosen, attached, web, code, servers, mcp, onChoose, onWeb, onCode, onMcp, onPick } = props;
  return (
    <fieldset className="documents">
      <legend className="visually-hidden">Documents</legend>
      {attached !== null ? (
        <span className="documents-says">{attached}</span>
      ) : (
        <Chip on={chosen.length === 0} onPress={() => onChoose([])}>
          All documents <span className="num documents-total">{collections.data && total(collections.data)}</span>
        </Chip>
      )}
      <Chip
        on={web}
        title="The run may search the web and read public pages; its searches leave this machine."
        onPress={() => onWeb(!web)}
      >
        The web
      </Chip>
      <Chip
        on={code}
        title="The run may run Python in a sandbox that reaches nothing but what is put in."
        onPress={() => onCode(!code)}
      >
        Code
      </Chip>
      {attached === null &&
        withChosen(collections.data, chosen).map(({ name, count }) => (
          <Chip key={name} on={chosen.includes(name)} title={name} onPress={() => onChoose(toggled(chosen, name))}>
            {collectionName(name)} <span className="num">{count}</span>
          </Chip>
        ))}
      {withChosen(servers.data, mcp).map(({ name }) => (
        <Chip
          key={name}
          on={mcp.includes(name)}
          title={`The run may use the tools of ${name}, a server that the operator allows; what it asks goes there.`}
          onPress={() => onMcp(toggled(mcp, name))}
        >
          {name}
        </Chip>
      ))}
      <span className="documents-add">
        <PickButton text="Add files" onPick={onPick} />
        <PickButton text="Add a folder" folder onPick={onPick} />
        <span className="quiet documents-hint">or drop them here</span>
      </span>
      <Failure query={together({ collections, servers })} />
    </fieldset>
  );
}

interface ChipProps {
  on: boolean;
  title?: string;
  onPress(): void;
  children: ReactNode;
}

function Chip({ on, title, onPress, children }: ChipProps) {
  return (
    <button type="button" className={on ? "chip on" : "chip"} aria-pressed={on} title={title} onClick={onPress}>
      {children}
    </button>
  );
}

function total(collections: readonly { count: number }[]): number {
  return collections.reduce((sum, collection) => sum + collection.count, 0);
}

/** The list with what was chosen and is not in it, or not yet: a choice that holds can always be seen and taken back. */
function withChosen<T extends { name: string; count?: number }>(
  known: readonly T[] | undefined,
  chosen: readonly string[],
): { name: string; count?: number }[] {
  const listed = known ? [...known] : [];
  const missing = chosen.filter((name) => !listed.some((one) => one.name === name));
  return [...listed, ...missing.map((name) => ({ name }))];
}

function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}

interface PickButtonProps {
  text: string;
  folder?: boolean;
  onPick(picked: Picked[]): void;
}

function PickButton({ text, folder = false, onPick }: PickButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" className="btn plain small" onClick={() => input.current?.click()}>
        {text}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={text}
        accept={folder ? undefined : ".pdf,.html,.htm,.md,.markdown,.txt,.docx"}
        {...(folder ? { webkitdirectory: "" } : {})}
        onChange={(event) => {
          if (event.target.files) onPick(readField(event.target.files));
          event.target.value = "";
        }}
      />
    </>
  );
}
