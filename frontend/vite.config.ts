import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { compressedFiles } from "./scripts/compress.mjs";
import { cssLayers } from "./scripts/css-layers.mjs";
import { messages } from "./vite-messages.ts";

const api = process.env.OFFING_API ?? "http://127.0.0.1:8321";

/** Libraries that every route needs. */
const LIBRARIES =
  /node_modules\/(react|react-dom|scheduler|use-sync-external-store|openapi-fetch|@lingui|@tanstack\/(?!react-virtual|virtual-core)[^/]+)\//;
/** Shared code that nearly every route needs. */
const COMMON =
  /src\/shared\/(stream\/(?!use-step-log)|language\/|format\/numbers|api\/(client|server-status|session|runs)\.|ui\/(button|tooltip|use-overlays|class-names|dialog|drafts|hooks|hotkeys|lazy-view|loaded|problem-note|copy-button|toast|unsaved-input|empty-state|controls)\b)/;

export default defineConfig({
  plugins: [messages(), cssLayers(), react(), compressedFiles()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: { proxy: { "/api": api, "/login": api } },
  build: {
    manifest: true,
    // The content security policy forbids data: URLs, so every font and image stays a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        // What every route needs, in few files: many small ones compress worse. Libraries change less often than the
        // rest, so their file stays in the cache of browsers after an update.
        codeSplitting: {
          groups: [
            { name: "libraries", test: LIBRARIES, priority: 2 },
            { name: "common", test: COMMON, priority: 1 },
          ],
        },
      },
    },
  },
  test: {
    environment: "jsdom",
    setupFiles: "src/testing/setup.ts",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    css: false,
    // A timeout that only a fault reaches, even while other programs use the machine.
    testTimeout: 30_000,
  },
});
