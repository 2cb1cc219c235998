import "./reset.css";
import "./tokens.css";
import "./base.css";
import { notifyManager } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { applyLanguage, readLanguageChoice } from "@/shared/language/language";
import "@/shared/ui/controls.css";
import { createBrowserHub } from "@/shared/stream/browser";
import { watchTypedFields } from "@/shared/ui/unsaved-input";
import { BROWSER_EFFECTS, watchCodeUpdates } from "./code-update";
import { prefetchScreen } from "./prefetch";
import { createQueryClient, Providers } from "./providers";
import { Pages } from "./router";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

watchTypedFields();
watchCodeUpdates(BROWSER_EFFECTS);

// Data is shown when it arrives. By default, each change waits for a timer first.
notifyManager.setScheduler(queueMicrotask);
const client = createQueryClient();
// With the code of its view, the first screen is rendered once instead of part by part.
const prefetched = prefetchScreen(client, location);

try {
  await Promise.all([applyLanguage(readLanguageChoice()), prefetched]);
  createRoot(root).render(
    <StrictMode>
      <Providers client={client} hub={createBrowserHub()}>
        <Pages />
      </Providers>
    </StrictMode>,
  );
} catch (error) {
  // Not translated: the catalog could not be loaded, so this sentence is in every language.
  root.textContent = "This page could not be loaded. Reload it. 页面无法加载，请重新加载。";
  throw error;
}
