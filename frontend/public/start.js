// Runs before everything else. The content security policy forbids inline scripts.
//
// Applies the stored theme before the first paint, so that the page does not flash, and sends the first requests of the
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

  /** The files with the texts of the view, by language. The build writes them; during development there are none. */
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
    if (pathname === "/runs" && !search)
      return [session, "/api/v1/runs?pinned_first=5&latest_of_thread=true&limit=100"];
    const id = /^\/runs\/([\w-]{36})$/.exec(pathname)?.[1];
    if (!id) return [session];
    const run = `/api/v1/runs/${id}`;
    const parameters = new URLSearchParams(search);
    const isStart =
      parameters.get("tab") === "timeline" && !["step", "only", "q", "node"].some((key) => parameters.has(key));
    return [session, run, ...(isStart ? [`${run}/steps?after=0&limit=256`] : [])];
  };

  const responses = new Map();
  for (const address of [...listRequests(location), ...texts[match ?? "en"]]) {
    const response = fetch(address);
    response.catch(() => undefined); // Whoever takes it shows the error.
    responses.set(address, response);
  }
  window.offingEarlyResponses = responses;
})();
