import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, test } from "vitest";
import { renderElement } from "@/testing/render-element";
import { lazyView } from "./lazy-view";

const LABEL = { id: "the harbor", message: "the harbor" };
const Harbor = () => <p>Harbor</p>;

function withQueries(element: ReactNode) {
  return <QueryClientProvider client={new QueryClient()}>{element}</QueryClientProvider>;
}

test("a view whose code was preloaded is there as soon as it is shown", async () => {
  const View = lazyView(LABEL, async () => Harbor);
  await View.preload();
  renderElement(withQueries(<View />));
  expect(screen.getByText("Harbor")).toBeVisible();
});

test("a view whose code could not be preloaded loads it again when it is shown", async () => {
  let attempts = 0;
  const View = lazyView(LABEL, async () => {
    attempts += 1;
    if (attempts === 1) throw new Error("the network is away");
    return Harbor;
  });
  await View.preload();
  renderElement(withQueries(<View />));
  expect(screen.queryByText("Harbor")).toBeNull();
  expect(await screen.findByText("Harbor")).toBeVisible();
  expect(attempts).toBe(2);
});
