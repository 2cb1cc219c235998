import { expect, test } from "vitest";
import { isLoopback } from "./loopback";

test.each(["localhost", "offing.localhost", "127.0.0.1", "127.1.2.3", "[::1]"])("%s is this computer", (host) => {
  expect(isLoopback(host)).toBe(true);
});

test.each([
  "example.org",
  "10.0.0.1",
  "192.168.1.2",
  "localhost.example.org",
  "127.0.0.1.example.org",
  "[fe80::1]",
  "",
])("“%s” is not this computer", (host) => {
  expect(isLoopback(host)).toBe(false);
});
