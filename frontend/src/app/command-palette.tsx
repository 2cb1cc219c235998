import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { SECTIONS } from "@/features/settings/sections";
import { type QuestionPreset, questionPresetsQuery } from "@/shared/api/asking";
import { foundRunsQuery } from "@/shared/api/found-runs";
import { type Run, type RunListFilter, runName } from "@/shared/api/runs";
import { runStatusLabel } from "@/shared/format/run-labels";
import { type LanguageChoice, useLanguageChoice } from "@/shared/language/language";
import { LANGUAGES } from "@/shared/language/languages";
import { Dialog } from "@/shared/ui/dialog";
import { useDebounced } from "@/shared/ui/hooks";
import { combineQueries, Failure } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { setTheme, THEME_NAMES, THEMES, type Theme, useTheme } from "@/shared/ui/theme";
import { SCREENS, type Screen } from "./screens";
import "./command-palette.css";

interface PaletteProps {
  onClose(): void;
  onScreen(to: Screen["to"]): void;
  /** Called with the view of the list of runs to open. */
  onRuns(view: RunListFilter): void;
  onCompare(): void;
  /** Called with the name of a section of the settings. */
  onSection(name: string): void;
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
  /** Whether the palette stays open until the command has succeeded. */
  staysOpen?: boolean;
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
  const [language, setLanguage] = useLanguageChoice();
  const changeLanguage = useMutation({ mutationFn: setLanguage, onSuccess: props.onClose });
  const found = runs.data ? runs.data : [];
  // While the next search is under way, the runs of the last one stay as far as they match, so Enter opens no other.
  const listed = isSettled ? found : found.filter((run) => containsWords(runName(run), search));
  const presets = useQuery(questionPresetsQuery);
  const actions: Command[] = [
    ...listScreens(props),
    ...listPresets(presets.data ? presets.data.items : [], props),
    ...listViews(props),
    ...listSections(props),
    ...listThemes(theme),
    ...listLanguages(language, changeLanguage.mutate),
  ];
  const commands = listCommands(search, actions, listed, props);
  const index = Math.min(active, commands.length - 1);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);

  const carryOut = (command: Command | undefined) => {
    if (!command) return;
    // A language is loaded first, and the palette says so if it cannot be.
    if (!command.staysOpen) props.onClose();
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
          aria-label={t`Find a screen or a run, do something, or ask a question`}
          aria-expanded="true"
          aria-autocomplete="list"
          aria-controls={`${id}-list`}
          aria-activedescendant={commands[index] && `${id}-${commands[index].id}`}
          autoComplete="off"
          spellCheck={false}
          placeholder={t`Find a screen or a run, do something, or ask a question`}
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
        <ProblemNote error={changeLanguage.error} />
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

type Handlers = Omit<PaletteProps, "onClose">;

function listScreens({ onScreen }: Handlers): Command[] {
  const screens = SCREENS.map((screen) => ({
    id: `screen${screen.to.replace("/", "-")}`,
    name: t`Go to ${i18n._(screen.name)}`,
    note: screen.keys,
    run: () => onScreen(screen.to),
  }));
  return [{ id: "new", name: t`New question`, note: t`action`, run: () => onScreen("/") }, ...screens];
}

function listPresets(presets: readonly QuestionPreset[], { onPreset }: Handlers): Command[] {
  return presets.map(({ id, name }) => ({
    id: `preset-${id}`,
    name: t`Ask as in “${name}”`,
    note: t`saved way to ask`,
    run: () => onPreset(id),
  }));
}

function listViews({ onRuns, onCompare }: Handlers): Command[] {
  const views: { id: string; name: string; filter: RunListFilter }[] = [
    { id: "waiting", name: t`Runs that wait for you`, filter: { state: "waiting" } },
    { id: "active", name: t`Runs that have not ended`, filter: { state: "active" } },
    { id: "failed", name: t`Runs that failed`, filter: { state: "failed" } },
    { id: "pinned", name: t`Pinned runs`, filter: { pinned: true } },
    { id: "archived", name: t`Archived runs`, filter: { archived: true } },
  ];
  return [
    { id: "compare", name: t`Compare two runs`, note: t`action`, run: onCompare },
    ...views.map(({ id, name, filter }) => ({ id: `runs-${id}`, name, note: t`list`, run: () => onRuns(filter) })),
  ];
}

function listSections({ onSection }: Handlers): Command[] {
  return SECTIONS.map(({ name, title, description }) => ({
    id: `section-${name}`,
    name: t`Settings: ${i18n._(title)}`,
    note: i18n._(description),
    run: () => onSection(name),
  }));
}

function listThemes(current: Theme): Command[] {
  return THEMES.filter((theme) => theme !== current).map((theme) => ({
    id: `theme-${theme}`,
    name: t`Change theme to ${i18n._(THEME_NAMES[theme])}`,
    note: t`theme`,
    run: () => setTheme(theme),
  }));
}

function listLanguages(current: LanguageChoice, change: (language: LanguageChoice) => void): Command[] {
  const choices: [LanguageChoice, string][] = [
    ["en", LANGUAGES.en],
    ["zh-Hans", LANGUAGES["zh-Hans"]],
    ["browser", t`as the browser`],
  ];
  return choices
    .filter(([choice]) => choice !== current)
    .map(([choice, name]) => ({
      id: `language-${choice}`,
      name: t`Change language to ${name}`,
      // In every language, so that a reader of another one finds it.
      note: "Language · 语言",
      run: () => change(choice),
      staysOpen: true,
    }));
}

/**
 * Return the actions of which name and note contain every word of the search text, and the runs: before the actions that
 * are seldom used, and after them once someone types. Asking is always possible once there is text.
 */
function listCommands(search: string, actions: readonly Command[], runs: readonly Run[], to: Handlers): Command[] {
  const found = runs.map((run) => ({
    id: `run-${run.id}`,
    name: runName(run),
    note: run.pinned_at ? t`pinned` : runStatusLabel(run).label,
    run: () => to.onRun(run.id),
  }));
  if (!search) {
    const isOften = ({ id }: Command) => id === "new" || id.startsWith("screen") || id.startsWith("preset");
    return [...actions.filter(isOften), ...found, ...actions.filter((action) => !isOften(action))];
  }
  const isNamed = ({ name }: Command) => containsWords(name, search);
  const isNoted = (command: Command) => !isNamed(command) && containsWords(`${command.name} ${command.note}`, search);
  const matching = [...actions.filter(isNamed), ...actions.filter(isNoted)];
  const ask = { id: "ask", name: t`Ask “${search}”`, note: t`new question`, run: () => to.onAsk(search) };
  return [...matching, ...found, ask];
}
