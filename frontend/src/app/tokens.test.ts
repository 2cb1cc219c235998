import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const css = readFileSync("src/app/tokens.css", "utf8");
const tokens = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [
    name,
    { light, dark },
  ]),
);

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(text: string, ground: string): number {
  const [low = 0, high = 0] = [luminance(text), luminance(ground)].sort((left, right) => left - right);
  return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ["paper", "surface", "sunk"];
const pairs = [
  ...["ink", "ink-2", "ink-3", "sea", "sun", "coral", "moss", "violet"].flatMap((text) =>
    GROUNDS.map((ground) => [text, ground]),
  ),
  ...["sea", "sun", "coral", "moss", "violet"].map((text) => [text, `${text}-soft`]),
  ["ink", "sun-soft"],
  ["ink", "coral-soft"],
  ["ink-2", "sun-soft"],
  ["on-sea", "sea"],
  ["on-sea", "sea-press"],
];

for (const theme of ["light", "dark"] as const) {
  test.each(pairs)(`%s on %s can be read in the ${theme} theme`, (text = "", ground = "") => {
    const [front, back] = [tokens.get(text)?.[theme], tokens.get(ground)?.[theme]];
    expect(front && back && contrast(front, back)).toBeGreaterThanOrEqual(4.5);
  });
}
