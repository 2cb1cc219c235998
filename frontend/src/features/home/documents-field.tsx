import { useRef } from "react";
import { collectionName } from "@/shared/api/library";
import { counted } from "@/shared/format/numbers";
import { type Picked, readField } from "@/shared/upload/read-drop";

interface DocumentsFieldProps {
  collections: readonly { name: string; count: number }[];
  chosen: readonly string[];
  /** Documents attached to this question; they take the place of collections. */
  attached: number;
  /** Whether the run may leave the library. */
  web: boolean;
  onChoose(chosen: string[]): void;
  onWeb(web: boolean): void;
  /** Whether the run may run code. */
  code: boolean;
  onCode(code: boolean): void;
  /** Other people's tools that the operator allows, and those that the run may use. */
  servers: readonly string[];
  mcp: readonly string[];
  onMcp(mcp: string[]): void;
  onPick(picked: Picked): void;
}

/**
 * What the run may see: the attached documents, else the chosen collections, else all of the library; and the web, code, and
 * other people's servers.
 */
export function DocumentsField(props: DocumentsFieldProps) {
  const { collections, chosen, attached, web, code, servers, mcp, onChoose, onWeb, onCode, onMcp, onPick } = props;
  const total = collections.reduce((sum, collection) => sum + collection.count, 0);
  return (
    <fieldset className="documents">
      <legend className="visually-hidden">Documents</legend>
      {attached > 0 ? (
        <span className="documents-says">Reads only the {counted(attached, "document")} you attached.</span>
      ) : (
        <>
          <button
            type="button"
            className={chosen.length === 0 ? "chip on" : "chip"}
            aria-pressed={chosen.length === 0}
            onClick={() => onChoose([])}
          >
            All documents <span className="num">{total}</span>
          </button>
          {collections.map((collection) => (
            <button
              key={collection.name}
              type="button"
              className={chosen.includes(collection.name) ? "chip on" : "chip"}
              aria-pressed={chosen.includes(collection.name)}
              title={collection.name}
              onClick={() => onChoose(toggled(chosen, collection.name))}
            >
              {collectionName(collection.name)} <span className="num">{collection.count}</span>
            </button>
          ))}
        </>
      )}
      <button
        type="button"
        className={web ? "chip on" : "chip"}
        aria-pressed={web}
        title="The run may search the web and read public pages; its searches leave this machine."
        onClick={() => onWeb(!web)}
      >
        The web
      </button>
      <button
        type="button"
        className={code ? "chip on" : "chip"}
        aria-pressed={code}
        title="The run may run Python in a sandbox that reaches nothing but what is put in."
        onClick={() => onCode(!code)}
      >
        Code
      </button>
      {servers.map((server) => (
        <button
          key={server}
          type="button"
          className={mcp.includes(server) ? "chip on" : "chip"}
          aria-pressed={mcp.includes(server)}
          title={`The run may use the tools of ${server}, a server that the operator allows; what it asks goes there.`}
          onClick={() => onMcp(toggled(mcp, server))}
        >
          {server}
        </button>
      ))}
      <span className="documents-add">
        <PickButton text="Add files" onPick={onPick} />
        <PickButton text="Add a folder" folder onPick={onPick} />
        <span className="quiet documents-hint">or drop them here</span>
      </span>
    </fieldset>
  );
}

function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}

interface PickButtonProps {
  text: string;
  folder?: boolean;
  onPick(picked: Picked): void;
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
