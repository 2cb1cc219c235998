import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type ReactNode, useRef } from "react";
import { collectionLabel } from "@/shared/api/library";
import { joinList } from "@/shared/format/lists";
import { type PickedFolder, readField } from "@/shared/upload/read-drop";

interface DocumentsFieldProps {
  selected: readonly string[];
  /**
   * Description of what the run reads if documents are attached to the question. They replace collections. `null` means
   * that none are attached.
   */
  attached: string | null;
  /** Whether the run may use the web. */
  web: boolean;
  onWeb(web: boolean): void;
  onPick(picked: PickedFolder[]): void;
}

/** What the run reads: the attached documents, otherwise the selected collections, otherwise the library; and the web. */
export function DocumentsField({ selected, attached, web, onWeb, onPick }: DocumentsFieldProps) {
  return (
    <fieldset className="documents">
      <legend className="visually-hidden">
        <Trans>Scope</Trans>
      </legend>
      <span dir="auto" className="documents-note">
        {attached ?? describeCollections(selected)}
      </span>
      <Chip
        isOn={web}
        title={t`Allow the run to search the web and read public pages. Search queries leave this machine.`}
        onPress={() => onWeb(!web)}
      >
        <Trans>The web</Trans>
      </Chip>
      <span className="documents-add">
        <PickButton text={t`Add files`} onPick={onPick} />
        <PickButton text={t`Add a folder`} folder onPick={onPick} />
        <span className="quiet documents-hint">
          <Trans>or drop or paste them here</Trans>
        </span>
      </span>
    </fieldset>
  );
}

function describeCollections(selected: readonly string[]): string {
  if (selected.length === 0) return t`Reads all documents.`;
  const names = joinList(selected.map(collectionLabel));
  return plural(selected.length, { one: `Reads the collection ${names}.`, other: `Reads the collections ${names}.` });
}

interface ChipProps {
  isOn: boolean;
  title?: string;
  onPress(): void;
  children: ReactNode;
}

export function Chip({ isOn, title, onPress, children }: ChipProps) {
  return (
    <button type="button" className={isOn ? "chip on" : "chip"} aria-pressed={isOn} title={title} onClick={onPress}>
      {children}
    </button>
  );
}

interface PickButtonProps {
  text: string;
  folder?: boolean;
  onPick(picked: PickedFolder[]): void;
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
