import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserHub } from "@/shared/stream/browser";
import { Providers } from "./providers";
import { createAppRouter } from "./router";
import "./tokens.css";
import "./base.css";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

createRoot(root).render(
  <StrictMode>
    <Providers hub={createBrowserHub()}>
      <RouterProvider router={createAppRouter()} />
    </Providers>
  </StrictMode>,
);
