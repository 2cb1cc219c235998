// Look at the form to ask: short, with its options, with an error, and with several questions.
//
//   OFFING_URL=http://127.0.0.1:8400 OFFING_LOGIN=/login?… OFFING_SHOTS=DIR node e2e/asking.mjs
import { screenshots, signedIn } from "./browser.mjs";

await signedIn(async (page) => {
  const question = page.getByRole("textbox", { name: /^Question/ });
  await question.waitFor();
  await screenshots(page, "ask");
  await question.fill("Which of these papers report a result on more than one benchmark?");
  await page.getByText(/past runs? of this graph/).waitFor();
  await page.getByRole("button", { name: "Options", exact: true }).click();
  await page.getByRole("radio", { name: /AgentFlow/ }).waitFor();
  await page.getByRole("checkbox", { name: "Search the web and read public pages" }).check();
  await page.getByRole("textbox", { name: "Only these domains" }).fill("example.org com");
  await page.getByRole("textbox", { name: "Maximum cost, $" }).fill("2");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page
    .getByText(/“com” is not a domain/)
    .first()
    .waitFor();
  await screenshots(page, "ask-options");
  for (const title of ["Model", "Report"]) {
    await page.getByRole("group", { name: title, exact: true }).scrollIntoViewIfNeeded();
    await screenshots(page, `ask-options-${title.toLowerCase()}`);
  }
  await page.getByRole("textbox", { name: "Only these domains" }).fill("");
  await page.getByRole("button", { name: "Options", exact: true }).click();
  await page.getByRole("checkbox", { name: "Several questions" }).check();
  await page.getByRole("textbox", { name: "Questions, one per line" }).fill("Why is the sea salt?\nHow old is it?\nno");
  await page.getByText(/A question needs/).waitFor();
  await page.getByRole("textbox", { name: "Questions, one per line" }).fill("Why is the sea salt?\nHow old is it?");
  await page.getByRole("button", { name: "Ask 2 questions…" }).click();
  await page.getByRole("dialog").waitFor();
  await screenshots(page, "ask-several");
  await page.getByRole("button", { name: "Start 2 runs" }).click();
  await page.getByRole("link", { name: "How old is it?" }).first().waitFor();
  await screenshots(page, "ask-several-results");
}, "asking works");
