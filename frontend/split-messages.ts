/** Which texts each view loads: the parts of a catalog. Pure. */

/** The modules of a build. A view is the entry or a module that is imported lazily. */
export interface ModuleGraph {
  entry: string;
  /** The modules that a module imports at once. */
  imports: ReadonlyMap<string, readonly string[]>;
  /** The modules that a module imports lazily. */
  lazyImports: ReadonlyMap<string, readonly string[]>;
  /** The ids of the texts in a module. */
  texts: ReadonlyMap<string, readonly string[]>;
}

/** A view, with the modules that are loaded with it and the views that may open it. */
interface View {
  modules: Set<string>;
  openers: Set<string>;
}

/** The entry, which every page loads, takes the texts of another view only if they are at most this many. */
const MAX_TEXTS_FOR_ENTRY = 2;

/**
 * Return the ids of the texts that each view loads together with its code. A view does not load texts that are loaded
 * before it can be opened. A view with fewer than `minTexts` texts of its own has none: the views that open it load
 * them, since a request costs more than they do.
 */
export function splitMessages(graph: ModuleGraph, minTexts: number): Map<string, Set<string>> {
  const views = findViews(graph);
  const own = new Map([...views].map(([name, { modules }]) => [name, textsOf(graph, modules)]));
  for (;;) {
    const parts = withoutInherited(graph, views, own);
    const small = [...parts].find(
      ([name, texts]) => texts.size > 0 && texts.size < minimumOf(graph, views.get(name), name, minTexts),
    );
    if (!small) return parts;
    const [name, texts] = small;
    for (const opener of views.get(name)?.openers ?? []) own.set(opener, union(own.get(opener), texts));
  }
}

/** Return the number of texts from which on a view has its own. 0 means that the views that open it cannot take them. */
function minimumOf(graph: ModuleGraph, view: View | undefined, name: string, minTexts: number): number {
  if (!view || view.openers.size === 0 || view.openers.has(name)) return 0;
  return view.openers.has(graph.entry) ? Math.min(minTexts, MAX_TEXTS_FOR_ENTRY + 1) : minTexts;
}

function findViews(graph: ModuleGraph): Map<string, View> {
  const views = new Map<string, View>();
  const open = (name: string, opener: string | null) => {
    const known = views.get(name);
    const view = known ?? { modules: listLoaded(graph, name), openers: new Set<string>() };
    if (opener !== null) view.openers.add(opener);
    if (known) return;
    views.set(name, view);
    for (const module of view.modules) for (const next of graph.lazyImports.get(module) ?? []) open(next, name);
  };
  open(graph.entry, null);
  return views;
}

/** Return the modules that are loaded together with a module. */
function listLoaded(graph: ModuleGraph, name: string): Set<string> {
  const modules = new Set([name]);
  for (const module of modules) for (const next of graph.imports.get(module) ?? []) modules.add(next);
  return modules;
}

function textsOf(graph: ModuleGraph, modules: Iterable<string>): Set<string> {
  return new Set([...modules].flatMap((module) => graph.texts.get(module) ?? []));
}

/** Return the texts of each view without those that are loaded before it can be opened. */
function withoutInherited(
  graph: ModuleGraph,
  views: ReadonlyMap<string, View>,
  own: ReadonlyMap<string, Set<string>>,
): Map<string, Set<string>> {
  const everything = new Set([...own.values()].flatMap((texts) => [...texts]));
  const inherited = new Map(
    [...views.keys()].map((name) => [name, name === graph.entry ? new Set<string>() : everything]),
  );
  // A view can be opened along several paths, also through itself, so this repeats until nothing changes.
  for (let changed = true; changed; ) {
    changed = false;
    for (const [name, { openers }] of views) {
      if (name === graph.entry) continue;
      const had = inherited.get(name) ?? everything;
      const has = new Set(
        [...had].filter((id) => [...openers].every((one) => own.get(one)?.has(id) || inherited.get(one)?.has(id))),
      );
      changed ||= has.size < had.size;
      inherited.set(name, has);
    }
  }
  return new Map(
    [...own].map(([name, texts]) => [name, new Set([...texts].filter((id) => !inherited.get(name)?.has(id)))]),
  );
}

function union<T>(one: ReadonlySet<T> | undefined, other: ReadonlySet<T>): Set<T> {
  return new Set([...(one ?? []), ...other]);
}
