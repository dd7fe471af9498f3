// The public JavaScript clients against a server: node stories.mjs URL. Prints the name of each story, with null or what went wrong.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html>", { url: "http://localhost/" });
for (const [name, value] of Object.entries({ window, document: window.document, navigator: window.navigator })) {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
const React = await import("react");
const { createRoot } = await import("react-dom/client");
const { Client } = await import("@langchain/langgraph-sdk");
const { useStream: useRunStream } = await import("@langchain/langgraph-sdk/react");
const { useStream: useThreadStream } = await import("@langchain/react");

const apiUrl = process.argv[2];
const client = new Client({ apiUrl, apiKey: null });
const say = (content) => ({ messages: [{ role: "user", content }] });
const texts = (messages) =>
  messages.map(({ content }) => (typeof content === "string" ? content : content.map((block) => block.text).join("")));

async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

// Show a hook in a page, and wait until what it returns is as a story wants it.
function show(hook, options) {
  let now, look = () => {};
  function View() {
    now = hook({ apiUrl, assistantId: "echo", ...options });
    React.useEffect(() => {
      look();
    });
    return null;
  }
  const root = createRoot(document.createElement("div"));
  root.render(React.createElement(View));
  const until = (isSo) =>
    new Promise((resolve) => {
      look = () => now && isSo(now) && resolve(now);
      look();
    });
  return { until, end: () => root.unmount() };
}

async function talk(hook, answer, options = {}) {
  const page = show(hook, options);
  (await page.until(() => true)).submit(say("hello"));
  await page.until((it) => !it.isLoading && it.messages.length === 2);
  (await page.until(() => true)).submit(say("ask Why?"));
  const asked = await page.until((it) => !it.isLoading && it.interrupt);
  assert.equal(asked.interrupt.value, "Why?");
  answer(asked);
  const last = await page.until((it) => !it.isLoading && it.messages.length === 4);
  page.end();
  assert.deepEqual(texts(last.messages), ["hello", "Echo: hello", "ask Why?", "You said because."]);
}

const stories = {
  "useStream of @langchain/langgraph-sdk": () =>
    talk(useRunStream, (it) => it.submit(undefined, { command: { resume: "because" } })),

  "useStream of @langchain/react": () => talk(useThreadStream, (it) => it.respond("because")),

  "useStream of @langchain/react over a WebSocket": () =>
    talk(useThreadStream, (it) => it.respond("because"), { transport: "websocket", apiKey: null }),

  "a page that is opened again joins its run": async () => {
    const { thread_id } = await client.threads.create();
    const { run_id } = await client.runs.create(thread_id, "echo", { input: say("hello"), streamResumable: true });
    const stream = client.runs.joinStream(thread_id, run_id, { lastEventId: "-1" });
    const parts = await all(stream);
    assert.equal(parts.at(-1).data.messages.at(-1).content, "Echo: hello");
  },

  "stateless runs are waited for and streamed": async () => {
    const left = await client.runs.wait(null, "echo", { input: say("hello") });
    assert.equal(left.messages.at(-1).content, "Echo: hello");
    const streamMode = ["values", "messages-tuple", "updates", "custom"];
    const parts = await all(client.runs.stream(null, "echo", { input: say("progress half"), streamMode }));
    for (const name of ["metadata", ...streamMode.map((mode) => mode.replace("-tuple", ""))]) {
      assert.ok(parts.some(({ event }) => event === name), name);
    }
  },

  "threads have state, history and copies": async () => {
    const { thread_id } = await client.threads.create({ metadata: { mark: randomUUID() } });
    await client.runs.wait(thread_id, "echo", { input: say("hello") });
    await client.threads.updateState(thread_id, { values: say("later") });
    const state = await client.threads.getState(thread_id);
    assert.deepEqual(texts(state.values.messages), ["hello", "Echo: hello", "later"]);
    const history = await client.threads.getHistory(thread_id, { limit: 2 });
    const before = await client.threads.getHistory(thread_id, { before: history[0].checkpoint });
    assert.equal(before[0].checkpoint.checkpoint_id, history[1].checkpoint.checkpoint_id);
    const copy = await client.threads.copy(thread_id);
    assert.equal((await client.threads.getState(copy.thread_id)).values.messages.length, 3);
    await client.threads.delete(thread_id);
    await assert.rejects(client.threads.get(thread_id), { status: 404 });
  },

  "assistants, schedules and the store": async () => {
    const made = await client.assistants.create({ graphId: "echo", name: "mine" });
    assert.equal((await client.assistants.update(made.assistant_id, { name: "ours" })).version, 2);
    await client.assistants.delete(made.assistant_id);
    const cron = await client.crons.create("echo", { schedule: "0 0 1 1 *", input: say("hello") });
    await client.crons.delete(cron.cron_id);
    const place = ["notes", randomUUID()];
    await client.store.putItem(place, "tide", { height: 3 });
    assert.deepEqual((await client.store.getItem(place, "tide")).value, { height: 3 });
    assert.equal((await client.store.searchItems(place)).items.length, 1);
  },

  // The calls of two public pages, without the pages; `make clients` uses releases of both in a browser.
  "the calls of deep-agents-ui": async () => {
    const client = new Client({ apiUrl, apiKey: null, defaultHeaders: { "x-api-key": "" } });
    const served = await client.assistants.search({ graphId: "careful", limit: 100, offset: 0 });
    const { assistant_id } = served.find(({ metadata }) => metadata.created_by === "system");
    const { thread_id } = await client.threads.create({ metadata: {} });
    const options = {
      config: { recursion_limit: 100 }, streamMode: ["values", "messages-tuple"], streamResumable: true, onDisconnect: "continue",
    };
    const newest = async () => {
      const [{ checkpoint }] = await client.threads.getHistory(thread_id, { limit: 10 });
      return { checkpoint_id: checkpoint.checkpoint_id, checkpoint_ns: "" };
    };
    const ask = (more) => all(client.runs.stream(thread_id, assistant_id, { ...options, ...more }));

    const first = await ask({ input: say("one") });
    assert.equal(first.at(-1).data.__interrupt__[0].value.action_requests[0].name, "write_file");
    const resumed = await ask({ input: null, command: { resume: { decisions: [{ type: "approve" }] } }, checkpoint: await newest() });
    assert.match(resumed.at(-1).data.messages.at(-1).content, /one[.]md/);
    await client.threads.updateState(thread_id, { values: { files: { "/seen.md": { content: "seen" } } } });
    assert.equal((await client.threads.getState(thread_id)).values.files["/seen.md"].content, "seen");
    const said = await ask({ input: say("two"), checkpoint: await newest() });
    assert.match(said.at(-1).data.messages.at(-1).content, /^Saw/);

    const again = await client.threads.create({ metadata: {} });
    const step = (more) => all(client.runs.stream(again.thread_id, "obedient", { ...options, ...more }));
    const before = await step({ input: say("execute true"), interruptBefore: ["tools"] });
    assert.equal(before.at(-1).data.messages.at(-1).tool_calls[0].name, "execute");
    await step({ input: null, command: { goto: "__end__", update: null } });
    assert.equal((await client.runs.list(again.thread_id, { limit: 1 }))[0].status, "success");
    const last = await client.threads.create({ metadata: {} });
    const { run_id } = await client.runs.create(last.thread_id, "waiter", { input: say(randomUUID()), streamResumable: true });
    for await (const { event, data } of client.runs.joinStream(last.thread_id, run_id, { cancelOnDisconnect: false, lastEventId: "-1" })) {
      if (event !== "metadata") continue;
      assert.equal(data.run_id, run_id);
      await client.runs.cancel(last.thread_id, run_id, false, "interrupt");
    }
    assert.equal((await client.runs.get(last.thread_id, run_id)).status, "interrupted");
    const found = await client.threads.search({ limit: 20, offset: 0, sortBy: "updated_at", sortOrder: "desc" });
    assert.ok(found.some((each) => each.thread_id === thread_id));
  },

  "the calls of agent-chat-ui": async () => {
    assert.ok((await (await fetch(`${apiUrl}/info`)).json()).version);
    const { thread_id } = await client.threads.create({ metadata: {} });
    const options = { streamMode: ["values", "messages-tuple", "custom"], streamSubgraphs: true };
    const content = [{ type: "text", text: "hello" }];
    const ask = (more) => all(client.runs.stream(thread_id, "echo", { ...options, ...more }));
    await ask({ input: { messages: [{ type: "human", content }] }, streamResumable: true });
    const [now, before] = await client.threads.getHistory(thread_id, { limit: 10 });
    assert.ok(now.values.messages.length > 1 && before);
    const edited = await ask({ input: say("ask Why?"), checkpoint: before.checkpoint, onDisconnect: "cancel" });
    assert.equal(edited.at(-1).data.__interrupt__[0].value, "Why?");
    const resumed = await ask({ input: {}, command: { resume: "because" }, streamResumable: false, onDisconnect: "cancel" });
    assert.equal(resumed.at(-1).data.messages.at(-1).content, "You said because.");
    const found = await client.threads.search({ metadata: { graph_id: "echo" }, limit: 100, offset: 0 });
    assert.ok(found.some((each) => each.thread_id === thread_id));

    // Its button to stop only hangs up.
    const hangUp = new AbortController();
    const last = (await client.threads.create({ metadata: {} })).thread_id;
    const waiting = { ...options, input: say(randomUUID()), signal: hangUp.signal, onDisconnect: "cancel" };
    for await (const { event } of client.runs.stream(last, "waiter", waiting)) if (event.startsWith("custom")) break;
    hangUp.abort();
    const [run] = await client.runs.list(last, { limit: 1 });
    await client.runs.join(last, run.run_id);
    assert.equal((await client.runs.get(last, run.run_id)).status, "interrupted");
  },
};

const results = {};
for (const [name, story] of Object.entries(stories)) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("no end in sight")), 60_000));
  results[name] = await Promise.race([story(), late]).then(() => null, (error) => String(error).slice(0, 300));
}
console.log(JSON.stringify(results));
process.exit(0);
