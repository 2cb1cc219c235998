import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserHub } from "@/shared/stream/browser";
import { watchTypedFields } from "@/shared/ui/unsaved-input";
import { isUploading } from "@/shared/upload/upload";
import { BROWSER_EFFECTS, watchCodeUpdates } from "./code-update";
import { Providers } from "./providers";
import { createAppRouter } from "./router";
import "./tokens.css";
import "./base.css";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

watchTypedFields();
watchCodeUpdates({ ...BROWSER_EFFECTS, isUploading });

createRoot(root).render(
  <StrictMode>
    <Providers hub={createBrowserHub()}>
      <RouterProvider router={createAppRouter()} />
    </Providers>
  </StrictMode>,
);
