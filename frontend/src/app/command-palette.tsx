import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { type QuestionPreset, questionPresetsQuery } from "@/shared/api/asking";
import { foundRunsQuery, type Run, runName } from "@/shared/api/runs";
import { runStatusLabel } from "@/shared/format/run-labels";
import { Dialog } from "@/shared/ui/dialog";
import { useDebounced } from "@/shared/ui/hooks";
import { combineQueries, Failure } from "@/shared/ui/loaded";
import { followingTheme, setTheme, THEME_NAMES, type Theme, useTheme } from "@/shared/ui/theme";
import { SCREENS, type Screen } from "./screens";
import "./command-palette.css";

interface PaletteProps {
  onClose(): void;
  onScreen(to: Screen["to"]): void;
  onRun(runId: string): void;
  onAsk(question: string): void;
  /** Called with a saved way to ask. */
  onPreset(presetId: string): void;
}

interface Command {
  id: string;
  name: string;
  /** What kind of thing it is, or the keys that do the same. */
  note: string;
  run(): void;
}

/** Maximum number of runs that are listed. */
const MAX_RUNS = 6;

/** A text field whose matches are screens, runs and actions. Arrow keys choose, Enter carries out, Escape closes. */
export function CommandPalette(props: PaletteProps) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const search = text.trim();
  const searched = useDebounced(search, 200);
  const runs = useQuery({ ...foundRunsQuery(searched, MAX_RUNS), placeholderData: keepPreviousData });
  const isSettled = searched === search && !runs.isPlaceholderData;
  const theme = useTheme();
  const found = runs.data ? runs.data : [];
  // While the next search is under way, the runs of the last one stay as far as they match, so Enter opens no other.
  const listed = isSettled ? found : found.filter((run) => containsWords(runName(run), search));
  const presets = useQuery(questionPresetsQuery);
  const commands = listCommands(search, listed, presets.data?.items, theme, props);
  const index = Math.min(active, commands.length - 1);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);

  const carryOut = (command: Command | undefined) => {
    if (!command) return;
    props.onClose();
    command.run();
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const next = { ArrowDown: index + 1, ArrowUp: index - 1 }[event.key];
    if (next === undefined && event.key !== "Enter") return;
    event.preventDefault();
    if (next === undefined) return carryOut(commands[index]);
    setActive((next + commands.length) % commands.length);
  };

  return (
    <Dialog open onClose={props.onClose} title={t`Find or do`}>
      <div className="palette">
        <input
          ref={input}
          dir="auto"
          className="field"
          role="combobox"
          aria-label={t`Find a screen or a run, or ask a question`}
          aria-expanded="true"
          aria-autocomplete="list"
          aria-controls={`${id}-list`}
          aria-activedescendant={commands[index] && `${id}-${commands[index].id}`}
          autoComplete="off"
          spellCheck={false}
          placeholder={t`Find a screen or a run, or ask a question`}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setActive(0);
          }}
          onKeyDown={handleKeyDown}
        />
        <div role="listbox" id={`${id}-list`} aria-label={t`Matches`} className="palette-list">
          {commands.map((command, at) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: keys reach the text field, which keeps the focus
            <div
              key={command.id}
              id={`${id}-${command.id}`}
              role="option"
              tabIndex={-1}
              aria-selected={at === index}
              className="palette-option"
              ref={at === index ? scrollIntoView : undefined}
              onPointerMove={() => at !== index && setActive(at)}
              onClick={() => carryOut(command)}
            >
              <span className="palette-name" dir="auto">
                {command.name}
              </span>
              <span className="palette-note">{command.note}</span>
            </div>
          ))}
        </div>
        <p className="visually-hidden" role="status">
          {plural(commands.length, { one: "# match", other: "# matches" })}
        </p>
        <Failure query={combineQueries({ runs, presets })} />
      </div>
    </Dialog>
  );
}

function scrollIntoView(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

function containsWords(text: string, search: string): boolean {
  const words = search.toLowerCase().split(/\s+/);
  return words.every((word) => text.toLowerCase().includes(word));
}

/** Return the commands that contain every word of the search text. Asking is always possible once there is text. */
function listCommands(
  search: string,
  runs: readonly Run[],
  presets: readonly QuestionPreset[] | undefined,
  theme: Theme,
  to: Omit<PaletteProps, "onClose">,
) {
  const next = followingTheme(theme);
  const commands: Command[] = [
    ...SCREENS.map((screen) => ({
      id: `screen${screen.to.replace("/", "-")}`,
      name: t`Go to ${i18n._(screen.name)}`,
      note: screen.keys,
      run: () => to.onScreen(screen.to),
    })),
    ...(presets?.map(({ id, name }) => ({
      id: `preset-${id}`,
      name: t`Ask as in “${name}”`,
      note: t`saved way to ask`,
      run: () => to.onPreset(id),
    })) ?? []),
    { id: "theme", name: t`Change theme to ${i18n._(THEME_NAMES[next])}`, note: t`theme`, run: () => setTheme(next) },
  ];
  const matching = commands.filter(({ name }) => containsWords(name, search));
  const found = runs.map((run) => ({
    id: `run-${run.id}`,
    name: runName(run),
    note: run.pinned_at ? t`pinned` : runStatusLabel(run).label,
    run: () => to.onRun(run.id),
  }));
  const ask = { id: "ask", name: t`Ask “${search}”`, note: t`new question`, run: () => to.onAsk(search) };
  return [...matching, ...found, ...(search ? [ask] : [])];
}
