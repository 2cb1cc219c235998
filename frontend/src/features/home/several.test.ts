import { expect, test } from "vitest";
import { splitQuestions, validateLine } from "./several";

test("numbers and bullets are no part of a question, and each question is asked once", () => {
  expect(splitQuestions("1. Why?\n 2) How? \n- Why?\n• 3 ships or 4?\n\n2024 was what?")).toEqual([
    "Why?",
    "How?",
    "3 ships or 4?",
    "2024 was what?",
  ]);
});

test("a line has the limits of a question", () => {
  expect(validateLine("Why?")).toBeNull();
  expect(validateLine("no")).not.toBeNull();
  expect(validateLine("x".repeat(8_001))).not.toBeNull();
});
