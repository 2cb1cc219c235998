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
  onPick(picked: Picked): void;
}

/** What the run may see: the attached documents, else the chosen collections, else all of the library; and the web. */
export function DocumentsField({ collections, chosen, attached, web, onChoose, onWeb, onPick }: DocumentsFieldProps) {
  const total = collections.reduce((sum, collection) => sum + collection.count, 0);
  const toggle = (name: string) =>
    onChoose(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
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
              onClick={() => toggle(collection.name)}
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
      <span className="documents-add">
        <PickButton text="Add files" onPick={onPick} />
        <PickButton text="Add a folder" folder onPick={onPick} />
        <span className="quiet documents-hint">or drop them here</span>
      </span>
    </fieldset>
  );
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
