// A page with the components of deep-agents-ui, put together as its README does: ?url=...&agent=...
import React from "react";
import { createRoot } from "react-dom/client";
import { useQueryState } from "nuqs";
import { NuqsAdapter } from "nuqs/adapters/react";
import { Client } from "@langchain/langgraph-sdk";
import { ChatInterface, ChatProvider, ClientProvider, ThreadList, saveConfig, useChat } from "deep-agents-ui";
import "deep-agents-ui/styles";

// Parts of the package use React without importing it.
globalThis.React = React;
const asked = new URLSearchParams(location.search);
const url = asked.get("url");
const assistant = await new Client({ apiUrl: url, apiKey: null }).assistants.get(asked.get("agent"));
// The list of threads asks for nothing without a key.
saveConfig({ deploymentUrl: url, assistantId: assistant.assistant_id, langsmithApiKey: "none" });

function Threads() {
  const [, setThread] = useQueryState("threadId");
  return <ThreadList onThreadSelect={setThread} />;
}

// The package shows a question, and leaves the answer to the page.
function Answer() {
  const { interrupt, sendHumanResponse } = useChat({ activeAssistant: assistant });
  const agree = () => sendHumanResponse([{ type: "accept", args: null }]);
  return interrupt ? <button onClick={agree}>Agree</button> : null;
}

const across = { display: "grid", gridTemplateColumns: "20rem 1fr", height: "100vh" };
const down = { display: "flex", flexDirection: "column", minHeight: 0 };

createRoot(document.getElementById("root")).render(
  <NuqsAdapter>
    <ClientProvider deploymentUrl={url} apiKey="">
      <ChatProvider activeAssistant={assistant}>
        <div style={across}>
          <div style={{ position: "relative" }}>
            <Threads />
          </div>
          <div style={down}>
            <Answer />
            <ChatInterface assistant={assistant} debugMode={false} controls={<i />} skeleton={<i />} />
          </div>
        </div>
      </ChatProvider>
    </ClientProvider>
  </NuqsAdapter>,
);
