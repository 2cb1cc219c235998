/** Stands in for the browser in Node.js: sets the page origin and sends the session cookie with every request. */

import { i18n } from "@lingui/core";

interface Known {
  url: string;
  link: string;
}

const { url, link } = JSON.parse(process.env.OFFING_CONTRACT ?? "{}") as Known;
if (!url) throw new Error("OFFING_CONTRACT is not set; run tests/api/test_web_ui_contract.py, which sets it");

i18n.loadAndActivate({ locale: "en", messages: {} });

const plain = globalThis.fetch;
const login = await plain(link, { redirect: "manual" });
const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
if (!cookie) throw new Error(`the login link gave no session: ${login.status}`);

Object.assign(globalThis, { location: { origin: url } });
globalThis.fetch = (input, init) => {
  const request = new Request(input instanceof Request ? input : new URL(String(input), url), init);
  request.headers.set("Cookie", cookie);
  return plain(request);
};
