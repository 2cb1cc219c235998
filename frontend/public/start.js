// Runs before everything else. The build puts it into each page, and the content security policy of a page names its hash.
//
// Applies the stored theme and density before the first paint, so that the page does not flash, and sends the first requests of the
// view while its code is still being fetched. `src/shared/api/early-responses.ts` hands the responses to whoever asks for
// the same address. A request that the view does not make after all is dropped.
(() => {
  const stored = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // Some private windows block storage. Theme and language are those of the browser then.
    }
  };
  const theme = stored("offing.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  const density = stored("offing.density");
  if (density === "compact") document.documentElement.dataset.density = density;

  /** The file with the texts of the view, by language. The build writes it; during development there is none. */
  const texts = JSON.parse(document.currentScript?.dataset.texts ?? "null");
  if (!texts) return;

  const script = (tag) => {
    try {
      const { language, script } = new Intl.Locale(tag).maximize();
      return `${language}-${script}`;
    } catch {
      return tag;
    }
  };
  const languages = Object.keys(texts);
  const wanted = [stored("offing.language") ?? "", ...navigator.languages];
  const match = wanted
    .map((tag) => languages.find((language) => script(language) === script(tag)))
    .find((language) => language !== undefined);

  const listRequests = ({ pathname, search }) => {
    if (pathname.startsWith("/shared/")) return [];
    const session = "/api/v1/session";
    if (pathname === "/") return [session, "/api/v1/runs?limit=8&minimap=true&pinned_first=5&latest_of_thread=true"];
    if (pathname === "/runs" && !search) return [session, "/api/v1/runs?pinned_first=5&latest_of_thread=true&limit=50"];
    const id = /^\/runs\/([\w-]{36})$/.exec(pathname)?.[1];
    if (!id) return [session];
    const run = `/api/v1/runs/${id}`;
    const parameters = new URLSearchParams(search);
    const isStart =
      parameters.get("tab") === "timeline" && !["step", "only", "q", "node"].some((key) => parameters.has(key));
    return [session, run, ...(isStart ? [`${run}/steps?after=0&limit=256`] : [])];
  };

  const responses = new Map();
  const keep = (address, response) => {
    response.catch(() => undefined); // Whoever takes it shows the error.
    responses.set(address, response);
  };
  for (const address of listRequests(location)) keep(address, fetch(address));
  // One file has the texts of all parts of the view, by the addresses of the files that have those of one part.
  const { file, parts } = texts[match ?? "en"];
  const joined = fetch(file).then((response) => response.json());
  for (const address of parts)
    keep(
      address,
      joined.then((all) => Response.json(all[address])),
    );
  window.offingEarlyResponses = responses;

  /** The scripts of the view, which are fetched while those of the entry are still on their way. */
  for (const href of JSON.parse(document.currentScript?.dataset.scripts ?? "[]"))
    document.head.append(
      Object.assign(document.createElement("link"), { rel: "modulepreload", crossOrigin: "", href }),
    );
})();
