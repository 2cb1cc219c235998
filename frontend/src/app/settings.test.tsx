import { screen, within } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { setDensity } from "@/shared/ui/density";
import { setTheme } from "@/shared/ui/theme";
import { renderPage } from "@/testing/render-page";
import { usePhone } from "@/testing/screen-size";

afterEach(() => {
  setTheme("system");
  setDensity("comfortable");
});

test("g and a comma open the settings, with their list and the first section", async () => {
  const { user, router } = renderPage("/library");
  await screen.findByRole("heading", { name: "Library" });
  await user.keyboard("g,");
  expect(await screen.findByRole("heading", { name: "Models" })).toBeVisible();
  expect(router.state.location.pathname).toBe("/settings");
  const list = within(screen.getByRole("navigation", { name: "Sections of the settings" }));
  expect(list.getByRole("link", { current: "page" })).toHaveTextContent("Models");
  await user.click(list.getByRole("link", { name: /Appearance/ }));
  expect(await screen.findByRole("heading", { name: "Appearance" })).toBeVisible();
  expect(router.state.location.pathname).toBe("/settings/appearance");
});

test("a phone shows the list first, and a section with the way back", async () => {
  usePhone();
  const { user } = renderPage("/settings");
  await user.click(await screen.findByRole("link", { name: /Appearance/ }));
  expect(await screen.findByRole("heading", { name: "Appearance" })).toBeVisible();
  expect(screen.queryByRole("navigation", { name: "Sections of the settings" })).toBeNull();
  await user.click(screen.getByRole("link", { name: "All settings" }));
  expect(await screen.findByRole("link", { name: /Models/ })).toBeVisible();
});

test("a section that does not exist is reported with the way to the others", async () => {
  renderPage("/settings/nothing");
  expect(await screen.findByText("There is no such section")).toBeVisible();
});

test("the theme of the appearance is the theme of the page", async () => {
  const { user } = renderPage("/settings/appearance");
  await user.selectOptions(await screen.findByRole("combobox", { name: "Theme" }), "dark");
  expect(document.documentElement.dataset.theme).toBe("dark");
});

test("rows are compact when a person chooses so, and this browser keeps it", async () => {
  const { user } = renderPage("/settings/appearance");
  const density = await screen.findByRole("combobox", { name: "Density" });
  await user.selectOptions(density, "compact");
  expect(document.documentElement.dataset.density).toBe("compact");
  expect(localStorage.getItem("offing.density")).toBe("compact");
  await user.selectOptions(density, "comfortable");
  expect(document.documentElement.dataset.density).toBeUndefined();
  expect(localStorage.getItem("offing.density")).toBeNull();
});
