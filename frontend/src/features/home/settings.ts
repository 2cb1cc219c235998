/** The settings of a question: everything of the form except the question and its attached documents. Pure. */

export interface Settings {
  turns: number;
  /** As typed. Empty means no limit. */
  usd: string;
  minutes: string;
  tokens: string;
  graph: string;
  /** Preset of engines and limits. Empty means none. */
  preset: string;
  /** Engine of every role: `extractive` or `litellm:provider/model`. Empty means that of the preset or the default. */
  engine: string;
  /** Engines of single roles, which come before `engine`. */
  roleEngines: Record<string, string>;
  collections: readonly string[];
  /** The run may search the web and read public pages. */
  web: boolean;
  /** As typed: domains separated by spaces, commas or lines. */
  onlyDomains: string;
  excludedDomains: string;
  /** Nothing may leave this machine. */
  offline: boolean;
  /** MCP servers whose tools the run may use. */
  mcp: readonly string[];
  code: boolean;
  /** Name of the stored tool policy that decides the tool calls. Empty means the default. */
  toolPolicy: string;
  /** Length of the report. Empty means as long as the question needs. */
  length: "" | "brief" | "standard" | "long";
  /** Language tag of the report. Empty means the language of the question. */
  language: string;
  /** Outline or other instructions on the form of the report. */
  template: string;
  /** The run asks what is unclear before it researches. */
  clarify: boolean;
  /** The run shows its plan before it follows it. */
  reviewPlan: boolean;
}

export const DEFAULT_SETTINGS: Settings = {
  turns: 12,
  usd: "",
  minutes: "",
  tokens: "",
  graph: "agentflow",
  preset: "",
  engine: "",
  roleEngines: {},
  collections: [],
  web: false,
  onlyDomains: "",
  excludedDomains: "",
  offline: false,
  mcp: [],
  code: false,
  toolPolicy: "",
  length: "",
  language: "",
  template: "",
  clarify: false,
  reviewPlan: false,
};

/** Return stored settings with every field. A draft of an earlier version of the page lacks some. */
export function completeSettings(stored: Partial<Settings>): Settings {
  return { ...DEFAULT_SETTINGS, ...stored };
}

/** Return the domains in a text, each once. */
export function splitDomains(text: string): string[] {
  return [...new Set(text.split(/[\s,;]+/).filter(Boolean))];
}

/** Return the roles whose engine differs from that of the others. */
export function listRoleEngines(settings: Pick<Settings, "roleEngines">): [string, string][] {
  return Object.entries(settings.roleEngines)
    .map(([role, engine]): [string, string] => [role, engine.trim()])
    .filter(([, engine]) => engine !== "");
}
