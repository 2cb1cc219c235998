import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { messages } from "../vite-messages.ts";

/** Runs the client code of the web UI against a running API. `tests/api/test_web_ui_contract.py` starts both. */
export default defineConfig({
  plugins: [messages()],
  root: fileURLToPath(new URL("..", import.meta.url)),
  resolve: { alias: { "@": fileURLToPath(new URL("../src", import.meta.url)) } },
  test: {
    environment: "node",
    setupFiles: "contract/signed-in.ts",
    include: ["contract/**/*.contract.ts"],
    testTimeout: 60_000,
  },
});
