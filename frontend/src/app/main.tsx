import "./reset.css";
import "./tokens.css";
import "./base.css";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { applyLanguage, readLanguageChoice } from "@/shared/language/language";
import "@/shared/ui/controls.css";
import { createBrowserHub } from "@/shared/stream/browser";
import { watchTypedFields } from "@/shared/ui/unsaved-input";
import { BROWSER_EFFECTS, watchCodeUpdates } from "./code-update";
import { prefetchScreen } from "./prefetch";
import { createQueryClient, Providers } from "./providers";
import { createAppRouter } from "./router";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

watchTypedFields();
watchCodeUpdates(BROWSER_EFFECTS);

const client = createQueryClient();
prefetchScreen(client, location);

try {
  await applyLanguage(readLanguageChoice());
  createRoot(root).render(
    <StrictMode>
      <Providers client={client} hub={createBrowserHub()}>
        <RouterProvider router={createAppRouter()} />
      </Providers>
    </StrictMode>,
  );
} catch (error) {
  // Not translated: the catalog could not be loaded, so this sentence is in every language.
  root.textContent = "This page could not be loaded. Reload it. 页面无法加载，请重新加载。";
  throw error;
}
