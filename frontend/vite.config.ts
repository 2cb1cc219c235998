import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const api = process.env.OFFING_API ?? "http://127.0.0.1:8321";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: { proxy: { "/api": api, "/login": api } },
  build: {
    manifest: true,
    // The page's policy allows no data: addresses, so every font and image stays a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: {
    environment: "jsdom",
    setupFiles: "src/testing/setup.ts",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    css: false,
    // A limit that only a fault reaches, also where other programs take the machine.
    testTimeout: 30_000,
  },
});
