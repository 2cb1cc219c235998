import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { CHUNKS } from "./scripts/chunks.mjs";
import { compressedFiles } from "./scripts/compress.mjs";
import { cssLayers } from "./scripts/css-layers.mjs";
import { firstLoads } from "./scripts/first-load.mjs";
import { messages } from "./vite-messages.ts";

const api = process.env.OFFING_API ?? "http://127.0.0.1:8321";

export default defineConfig({
  plugins: [messages(), cssLayers(), react(), firstLoads(), compressedFiles()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: { proxy: { "/api": api, "/login": api } },
  build: {
    manifest: true,
    // The content security policy forbids data: URLs, so every font and image stays a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: { groups: CHUNKS },
      },
    },
  },
  test: {
    setupFiles: "src/testing/setup.ts",
    // Functions are tested without a document, because making one takes about a second for each file.
    projects: [
      { extends: true, test: { name: "page", environment: "jsdom", include: ["src/**/*.test.tsx"] } },
      { extends: true, test: { name: "functions", environment: "node", include: ["src/**/*.test.ts"] } },
    ],
    restoreMocks: true,
    css: false,
    // A timeout that only a fault reaches, even while other programs use the machine.
    testTimeout: 30_000,
  },
});
