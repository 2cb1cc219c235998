import { act, screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { afterEach, expect, test, vi } from "vitest";
import { describeErased } from "@/features/library/erase-dialog";
import { applyLanguage, readLanguageChoice } from "@/shared/language/language";
import { aReport, aRun, RUN_ID, steps } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

afterEach(async () => {
  localStorage.clear();
  await act(() => applyLanguage("en"));
});

test("a language that is chosen in the settings changes the page at once, and is kept", async () => {
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("button", { name: "Account" }));
  await user.selectOptions(await screen.findByRole("combobox", { name: "Language" }), "简体中文");
  expect(await screen.findByRole("dialog", { name: "账户" })).toBeVisible();
  expect(await screen.findByRole("heading", { name: "你想了解什么？" })).toBeInTheDocument();
  expect(screen.getByRole("link", { name: "文档库" })).toBeInTheDocument();
  expect(document.documentElement.lang).toBe("zh-Hans");
  expect(readLanguageChoice()).toBe("zh-Hans");
});

test("the choice to follow the browser is the default, and forgets the chosen language", async () => {
  localStorage.setItem("offing.language", "zh-Hans");
  vi.spyOn(navigator, "languages", "get").mockReturnValue(["zh-CN"]);
  await applyLanguage(readLanguageChoice());
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("button", { name: "账户" }));
  await user.selectOptions(await screen.findByRole("combobox", { name: "语言" }), "跟随浏览器");
  await waitFor(() => expect(localStorage.getItem("offing.language")).toBeNull());
  expect(readLanguageChoice()).toBe("browser");
});

test("a stored language that the page does not have follows the browser", () => {
  localStorage.setItem("offing.language", "tlh");
  expect(readLanguageChoice()).toBe("browser");
});

test("an open run, its title and its typed message follow a change of the language", async () => {
  const run = aRun({ last_seq: 3, step_marks: "nns" });
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(run)),
    http.get(at("/runs/:id/steps"), () => HttpResponse.json({ items: steps(1, 3), next: null })),
  );
  const { user } = renderPage(`/runs/${RUN_ID}`);
  await screen.findByRole("tab", { name: "Timeline" });
  await user.type(await screen.findByRole("textbox", { name: "Message to the run" }), "Read the second paper");
  await act(() => applyLanguage("zh-Hans"));
  expect(screen.getByRole("tab", { name: "时间线" })).toBeVisible();
  expect(screen.getByRole("button", { name: "提前完成" })).toBeVisible();
  expect(document.title).toBe(`运行中：${run.question}`);
  expect(screen.getByRole("textbox", { name: "给运行的消息" })).toHaveValue("Read the second paper");
});

test.each([
  ["/", "Ask a question that takes research", "提出一个需要研究的问题"],
  ["/library", "Search names and passages", "搜索名称和段落"],
])("the attributes of the view %s follow a change of the language", async (address, english, chinese) => {
  renderPage(address);
  await screen.findByPlaceholderText(english);
  await act(() => applyLanguage("zh-Hans"));
  expect(screen.getByPlaceholderText(chinese)).toBeVisible();
});

test("texts of people and of documents have their own direction", async () => {
  server.use(
    http.get(at("/runs"), () => HttpResponse.json({ items: [aRun({ question: "ما هو السؤال؟" })], next: null })),
  );
  renderPage("/");
  expect((await screen.findByText("ما هو السؤال؟")).closest("[dir=auto]")).not.toBeNull();
  expect(screen.getByRole("textbox", { name: "Question" })).toHaveAttribute("dir", "auto");
});

test("the sentences of a report have their own direction", async () => {
  const run = aRun({ status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z", step_marks: "npw" });
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(run)),
    http.get(at("/runs/:id/report"), () => HttpResponse.json(aReport({ title: "عنوان" }))),
  );
  renderPage(`/runs/${RUN_ID}?tab=report`);
  expect(await screen.findByRole("heading", { name: "عنوان" })).toHaveAttribute("dir", "auto");
  for (const sentence of document.querySelectorAll(".sentence")) {
    expect(sentence.firstElementChild).toHaveAttribute("dir", "auto");
  }
});

const ERASED = { sources: 1, snapshots: 2, passages: 1_200, steps: 0 };

test("English has two plural forms, Chinese has one, and numbers have separators", async () => {
  expect(describeErased(ERASED)).toBe("1 source, 2 stored files, 1,200 passages, copies in 0 steps of runs");
  await act(() => applyLanguage("zh-Hans"));
  expect(describeErased(ERASED)).toBe("1 个来源，2 个存储的文件，1,200 个段落，运行中 0 个步骤的副本");
});
