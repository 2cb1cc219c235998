import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type ReactNode, useRef } from "react";
import { collectionLabel } from "@/shared/api/library";
import { combineQueries, Failure, type Loadable } from "@/shared/ui/loaded";
import { type PickedFolder, readField } from "@/shared/upload/read-drop";

interface DocumentsFieldProps {
  collections: Loadable<readonly { name: string; count: number }[]>;
  selected: readonly string[];
  /**
   * Description of what the run reads if documents are attached to the question. They replace collections. `null` means
   * that none are attached.
   */
  attached: string | null;
  /** Whether the run may use the web. */
  web: boolean;
  onSelect(chosen: string[]): void;
  onWeb(web: boolean): void;
  /** Whether the run may run code. */
  code: boolean;
  onCode(code: boolean): void;
  /** MCP servers that the operator allows, and those that the run may use. */
  servers: Loadable<readonly { name: string }[]>;
  mcp: readonly string[];
  onMcp(mcp: string[]): void;
  onPick(picked: PickedFolder[]): void;
}

/**
 * Scope of the run: the attached documents, otherwise the selected collections, otherwise the whole library; and the
 * web, code and MCP servers.
 */
export function DocumentsField(props: DocumentsFieldProps) {
  const { collections, selected, attached, web, code, servers, mcp, onSelect, onWeb, onCode, onMcp, onPick } = props;
  return (
    <fieldset className="documents">
      <legend className="visually-hidden">
        <Trans>Scope</Trans>
      </legend>
      {attached !== null ? (
        <span dir="auto" className="documents-note">
          {attached}
        </span>
      ) : (
        <Chip isOn={selected.length === 0} onPress={() => onSelect([])}>
          <Trans>All documents</Trans>{" "}
          <span className="num documents-total">{collections.data && totalCount(collections.data)}</span>
        </Chip>
      )}
      <Chip
        isOn={web}
        title={t`Allow the run to search the web and read public pages. Search queries leave this machine.`}
        onPress={() => onWeb(!web)}
      >
        <Trans>The web</Trans>
      </Chip>
      <Chip
        isOn={code}
        title={t`Allow the run to execute Python in a sandbox. The code can access only the inputs passed to it.`}
        onPress={() => onCode(!code)}
      >
        <Trans>Code</Trans>
      </Chip>
      {attached === null &&
        withSelected(collections.data, selected).map(({ name, count }) => (
          <Chip
            key={name}
            isOn={selected.includes(name)}
            title={name}
            onPress={() => onSelect(toggleName(selected, name))}
          >
            <bdi>{collectionLabel(name)}</bdi> <span className="num">{count}</span>
          </Chip>
        ))}
      {withSelected(servers.data, mcp).map(({ name }) => (
        <Chip
          key={name}
          isOn={mcp.includes(name)}
          title={t`Allow the run to use the tools of ${name}, an MCP server that the operator allows. Tool arguments are sent to it.`}
          onPress={() => onMcp(toggleName(mcp, name))}
        >
          {name}
        </Chip>
      ))}
      <span className="documents-add">
        <PickButton text={t`Add files`} onPick={onPick} />
        <PickButton text={t`Add a folder`} folder onPick={onPick} />
        <span className="quiet documents-hint">
          <Trans>or drop them here</Trans>
        </span>
      </span>
      <Failure query={combineQueries({ collections, servers })} />
    </fieldset>
  );
}

interface ChipProps {
  isOn: boolean;
  title?: string;
  onPress(): void;
  children: ReactNode;
}

function Chip({ isOn, title, onPress, children }: ChipProps) {
  return (
    <button type="button" className={isOn ? "chip on" : "chip"} aria-pressed={isOn} title={title} onClick={onPress}>
      {children}
    </button>
  );
}

function totalCount(collections: readonly { count: number }[]): number {
  return collections.reduce((sum, collection) => sum + collection.count, 0);
}

/** Return the list with the selected names that it lacks, so that a selection can always be seen and removed. */
function withSelected<T extends { name: string; count?: number }>(
  options: readonly T[] | undefined,
  selected: readonly string[],
): { name: string; count?: number }[] {
  // Of a folder whose documents are all missing, nothing can be read.
  const listed = options ? options.filter(({ count }) => count !== 0) : [];
  const missingNames = selected.filter((name) => !listed.some((one) => one.name === name));
  return [...listed, ...missingNames.map((name) => ({ name }))];
}

function toggleName(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
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
