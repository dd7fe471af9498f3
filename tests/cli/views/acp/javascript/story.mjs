// Drives a whole session with the protocol's own client: node story.mjs DIRECTORY PROGRAM ARGUMENTS...
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk";

const [directory, program, ...programArguments] = process.argv.slice(2);
const seen = { asked: [], stops: [], plan: [], text: "", replayed: "", statuses: {} };
const answers = ["allow", "reject"];
let replays = false;
let written;

function startAgent() {
  const agent = spawn(program, programArguments, { stdio: ["pipe", "pipe", "inherit"] });
  return { agent, stream: acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)) };
}

function makeClient() {
  return acp
    .client({ name: "story" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push({ kind: params.toolCall.kind, content: params.toolCall.content.map((each) => each.type) });
      return { outcome: { outcome: "selected", optionId: answers.shift() } };
    })
    .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") {
        seen[replays ? "replayed" : "text"] += update.content.text;
        written?.();
      } else if (update.sessionUpdate === "plan") {
        seen.plan = update.entries.map((each) => `${each.status}: ${each.content}`);
      } else if (update.sessionUpdate === "tool_call_update" && update.status) {
        seen.statuses[update.toolCallId] = update.status;
      }
    });
}

async function ask(agent, sessionId, text) {
  const prompt = [{ type: "text", text }];
  const { stopReason } = await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt });
  seen.stops.push(stopReason);
}

const begin = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} };
const first = startAgent();
const sessionId = await makeClient().connectWith(first.stream, async (agent) => {
  await agent.request(acp.methods.agent.initialize, begin);
  const made = await agent.request(acp.methods.agent.session.new, { cwd: directory, mcpServers: [] });
  await ask(agent, made.sessionId, "Change the notes.");
  await ask(agent, made.sessionId, "Run a command, and plan.");
  const turn = ask(agent, made.sessionId, "Write at length.");
  await new Promise((resolve) => (written = resolve));
  await agent.notify(acp.methods.agent.session.cancel, { sessionId: made.sessionId });
  await turn;
  return made.sessionId;
});
first.agent.kill("SIGKILL");
await new Promise((resolve) => first.agent.once("close", resolve));

const second = startAgent();
replays = true;
await makeClient().connectWith(second.stream, async (agent) => {
  await agent.request(acp.methods.agent.initialize, begin);
  const listed = await agent.request(acp.methods.agent.session.list, { cwd: directory });
  seen.listed = listed.sessions.map((each) => each.title);
  await agent.request(acp.methods.agent.session.load, { sessionId, cwd: directory, mcpServers: [] });
  await ask(agent, sessionId, "And now?");
});
second.agent.stdin.end();
seen.code = await new Promise((resolve) => second.agent.once("close", resolve));
console.log(JSON.stringify(seen));
