/** Every story renders in every frame, and axe finds no violation. Colors need a browser: see e2e/stories.mjs. */

import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import axe from "axe-core";
import { expect, test } from "vitest";
import { renderElement } from "@/testing/render-element";
import { renderPage } from "@/testing/render-page";
import { STORIES } from "./stories";

/** Return the violations as `rule: target`. jsdom has no layout, so contrast is not checked here. */
async function findViolations(root: Element): Promise<string[]> {
  const { violations } = await axe.run(root, {
    rules: { "color-contrast": { enabled: false }, region: { enabled: false } },
  });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

test.each(STORIES)("the story $name has no accessibility violation", async ({ render: story }) => {
  const { container } = renderElement(<div>{story()}</div>);
  expect(container.textContent).not.toBe("");
  expect(await findViolations(container)).toEqual([]);
});

test("the check finds a button without a name", async () => {
  const { container } = renderElement(<button type="button" />);
  expect(await findViolations(container)).toHaveLength(1);
});

test("the page shows each story in both themes, at phone width and from right to left", async () => {
  renderPage("/stories");
  for (const { name } of STORIES) {
    const story = await screen.findByRole("region", { name });
    expect(story.querySelectorAll("[data-frame]")).toHaveLength(4);
    expect(story.querySelectorAll('[dir="rtl"]')).toHaveLength(1);
  }
});

test("the address can name one story", async () => {
  renderPage("/stories?story=Menu");
  await screen.findByRole("region", { name: "Menu" });
  expect(screen.queryByRole("region", { name: "Tabs" })).toBeNull();
});

function renderStory(name: string) {
  const story = STORIES.find((one) => one.name === name);
  if (!story) throw new Error(`There is no story ${name}.`);
  return { user: userEvent.setup(), ...renderElement(story.render()) };
}

test("an open menu has no violation, moves with the arrow keys and returns the focus", async () => {
  const { user } = renderStory("Menu");
  const button = screen.getByRole("button", { name: "Export" });
  await user.click(button);
  const menu = await screen.findByRole("menu", { name: "Export" });
  expect(await findViolations(menu)).toEqual([]);
  expect(within(menu).getByRole("menuitem", { name: /Markdown/ })).toHaveFocus();
  await user.keyboard("{ArrowDown}");
  expect(within(menu).getByRole("menuitem", { name: /JSON/ })).toHaveFocus();
  await user.keyboard("{Escape}");
  expect(screen.queryByRole("menu")).toBeNull();
  await expect.poll(() => document.activeElement).toBe(button);
});

test("a popover has the name of its button and closes from inside", async () => {
  const { user } = renderStory("Popover");
  await user.click(screen.getByRole("button", { name: "Budget" }));
  const panel = await screen.findByRole("dialog", { name: "Budget" });
  expect(await findViolations(panel)).toEqual([]);
  await user.click(within(panel).getByRole("button", { name: "Keep the budget" }));
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("a combo box lists the options that contain the typed text, and takes others too", async () => {
  const { user } = renderStory("Combobox");
  const field = await screen.findByRole("combobox", { name: "Engine" });
  await user.type(field, "plan");
  expect((await screen.findAllByRole("option")).map(({ textContent }) => textContent)).toEqual(["policy:planner@7"]);
  await user.keyboard("{ArrowDown}{Enter}");
  expect(field).toHaveValue("policy:planner@7");
  await user.clear(field);
  await user.type(field, "own:model");
  await user.tab();
  expect(field).toHaveValue("own:model");
});

test("a tooltip opens for the keyboard and closes with Escape", async () => {
  const { user } = renderStory("Tooltip");
  await user.tab();
  expect(await screen.findByRole("tooltip")).toHaveTextContent("Stop collecting evidence and write the report");
  await user.keyboard("{Escape}");
  await expect.poll(() => screen.queryByRole("tooltip")).toBeNull();
});

test("a menu inside a dialog belongs to the dialog", async () => {
  const { user } = renderStory("Dialog");
  await user.click(screen.getByRole("button", { name: "Cancel the run" }));
  const dialog = screen.getByRole("dialog", { name: "Cancel this run?" });
  await user.click(within(dialog).getByRole("button", { name: "More" }));
  expect(await within(dialog).findByRole("menuitem", { name: "Finish early" })).toBeVisible();
});

test("tabs are chosen with arrow keys, in the reading direction", async () => {
  const { user } = renderStory("Tabs");
  await user.click(screen.getByRole("tab", { name: "Timeline" }));
  await user.keyboard("{ArrowRight}");
  expect(screen.getByRole("tab", { name: "Sources 64", selected: true })).toHaveFocus();
  await user.keyboard("{End}");
  expect(screen.getByRole("tabpanel", { name: "Report" })).toBeVisible();
  screen.getByRole("tablist").dir = "rtl";
  screen.getByRole("tablist").style.direction = "rtl";
  await user.keyboard("{ArrowRight}");
  expect(screen.getByRole("tab", { name: "Sources 64", selected: true })).toHaveFocus();
});
