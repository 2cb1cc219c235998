import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { randomName } from "../stream/browser";
import { createRun, type Run, type RunRequest } from "./runs";

/**
 * Asks for the run that `requestOf` describes. Asking for the same again after a lost answer makes no second run: the
 * idempotency key stays until the request is another one or has been answered. What `requestOf` throws is the error.
 */
export function useCreateRun<T>(
  requestOf: (given: T) => RunRequest | Promise<RunRequest>,
  onCreated: (run: Run) => void,
) {
  const sent = useRef({ text: "", key: "" });
  return useMutation({
    mutationFn: async (given: T) => {
      const request = await requestOf(given);
      const text = JSON.stringify(request);
      if (sent.current.text !== text) sent.current = { text, key: randomName() };
      return createRun(request, sent.current.key);
    },
    onSuccess: (run) => {
      sent.current = { text: "", key: "" };
      onCreated(run);
    },
  });
}
