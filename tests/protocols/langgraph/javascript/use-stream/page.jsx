// A chat page with `useStream`, as its documentation builds it.
import { useStream } from "@langchain/langgraph-sdk/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);

function show(name, value) {
  const now = new URLSearchParams(location.search);
  now.set(name, value);
  history.replaceState(null, "", `?${now}`);
}

function Chat() {
  const [threadId, setThreadId] = useState(query.get("thread"));
  const thread = useStream({
    apiUrl: `${location.origin}/langgraph`,
    assistantId: query.get("assistant") ?? "conversation",
    defaultHeaders: { "x-api-key": query.get("key") },
    messagesKey: "messages",
    reconnectOnMount: true,
    threadId,
    onThreadId: (id) => {
      setThreadId(id);
      show("thread", id);
    },
  });
  const ask = () => {
    const messages = [{ type: "human", content: "salt" }];
    thread.submit({ messages, ...JSON.parse(query.get("input") ?? "{}") }, { streamMode: ["messages-tuple", "values"], streamResumable: true });
  };
  return (
    <main>
      <button type="button" onClick={ask}>Ask</button>
      <button type="button" onClick={() => thread.submit(undefined, { command: { resume: "yes" } })}>Approve</button>
      <p id="state">{thread.isLoading ? "loading" : "idle"}</p>
      <p id="error">{thread.error ? String(thread.error) : ""}</p>
      <p id="interrupt">{thread.interrupt?.value?.question ?? ""}</p>
      <ul>
        {thread.messages.map((one) => (
          <li key={one.id}>{`${one.type}: ${one.content}`}</li>
        ))}
      </ul>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
