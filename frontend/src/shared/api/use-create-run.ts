import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { randomId } from "../stream/browser";
import { createRun, type Run, type RunRequest } from "./runs";

/**
 * Create the run that `buildRequest` describes. A retry after a lost response creates no second run: the idempotency
 * key stays the same until the request changes or succeeds. An exception of `buildRequest` becomes the error of the
 * mutation.
 */
export function useCreateRun<T>(
  buildRequest: (input: T) => RunRequest | Promise<RunRequest>,
  onCreated: (run: Run) => void,
) {
  const lastRequest = useRef({ text: "", key: "" });
  return useMutation({
    mutationFn: async (input: T) => {
      const request = await buildRequest(input);
      const text = JSON.stringify(request);
      if (lastRequest.current.text !== text) lastRequest.current = { text, key: randomId() };
      return createRun(request, lastRequest.current.key);
    },
    onSuccess: (run) => {
      lastRequest.current = { text: "", key: "" };
      onCreated(run);
    },
  });
}
