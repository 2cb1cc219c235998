import { i18n } from "@lingui/core";

// The texts of the code are English, so English needs no catalog here.
i18n.loadAndActivate({ locale: "en", messages: {} });

// Tests in files that end in `.test.ts` run without a document, unless they ask for jsdom.
if (typeof document !== "undefined") await import("./setup-page");
