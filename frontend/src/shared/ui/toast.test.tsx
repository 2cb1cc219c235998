import { act, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { renderElement } from "@/testing/render-element";
import { TOAST_MS, ToastProvider, useToast } from "./toast";

beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));
afterEach(() => void vi.useRealTimers());

function renderToasts(undo?: () => void) {
  let count = 0;
  function Show() {
    const toast = useToast();
    const handleClick = () => {
      count += 1;
      toast({ text: `Message ${count}`, ...(undo && { undo }) });
    };
    return (
      <button type="button" onClick={handleClick}>
        Show
      </button>
    );
  }
  renderElement(
    <ToastProvider>
      <Show />
    </ToastProvider>,
  );
  return userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms) });
}

const show = () => screen.getByRole("button", { name: "Show" });
const pass = (ms: number) => act(() => void vi.advanceTimersByTime(ms));

test("a message is announced and disappears after a while", async () => {
  const user = renderToasts();
  await user.click(show());
  expect(screen.getByRole("status")).toHaveTextContent("Message 1");
  pass(TOAST_MS + 100);
  expect(screen.queryByText("Message 1")).toBeNull();
});

test("a message stays while the pointer is on it", async () => {
  const user = renderToasts();
  await user.click(show());
  await user.hover(screen.getByText("Message 1"));
  pass(3 * TOAST_MS);
  expect(screen.getByText("Message 1")).toBeVisible();
  await user.unhover(screen.getByText("Message 1"));
  pass(TOAST_MS + 100);
  expect(screen.queryByText("Message 1")).toBeNull();
});

test("undoing calls the action and closes the message", async () => {
  const undo = vi.fn();
  const user = renderToasts(undo);
  await user.click(show());
  await user.click(screen.getByRole("button", { name: "Undo" }));
  expect(undo).toHaveBeenCalledTimes(1);
  expect(screen.queryByText("Message 1")).toBeNull();
});

test("at most three messages are shown, and the oldest is dropped", async () => {
  const user = renderToasts();
  for (let at = 0; at < 4; at += 1) await user.click(show());
  expect(screen.queryByText("Message 1")).toBeNull();
  expect(screen.getByText("Message 4")).toBeVisible();
});
