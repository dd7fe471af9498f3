// The public chat pages in a browser: node stories.mjs CHROMIUM URL AGENT-CHAT-UI DEEP-AGENTS-UI [PICTURE].
// Prints the name of each story, with null or what went wrong.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chromium } from "playwright-core";

const [executablePath, url, chatPage, deepPage, picture] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const ask = async (path, body) => {
  const asked = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await fetch(url + path, asked)).json();
};

class Page {
  constructor(page) {
    this.page = page;
    this.button = (name) => page.getByRole("button", { name, exact: true });
    this.thread = () => new URL(page.url()).searchParams.get("threadId");
  }

  static async open(address) {
    const page = await browser.newPage({ viewport: { width: 1100, height: 800 } });
    page.setDefaultTimeout(20_000);
    await page.goto(address);
    return new this(page);
  }

  sees = (text) => this.page.getByText(text).last().waitFor();
  misses = async (text) => assert.equal(await this.page.getByText(text).count(), 0, `${text} is there`);
  rests = () => this.button("Send").waitFor();

  // Say something, and wait for the answer.
  async hears(text, answer) {
    await this.say(text);
    await this.sees(answer);
    await this.rests();
  }

  // Its runs, when none is under way.
  async ended() {
    const runs = await ask(`/threads/${this.thread()}/runs`);
    for (const { run_id } of runs) await ask(`/threads/${this.thread()}/runs/${run_id}/join`);
    return ask(`/threads/${this.thread()}/runs`);
  }
}

// agent-chat-ui, as a person uses it.
class Chat extends Page {
  static open = (agent = "pilot") => super.open(`${chatPage}/?${new URLSearchParams({ apiUrl: url, assistantId: agent })}`);

  async say(text) {
    await this.page.getByPlaceholder("Type your message...").fill(text);
    await this.button("Send").click();
  }

  showHistory = () => this.page.locator("button:has(svg.lucide-panel-right-close)").last().click();

  // What the buttons beside a message do; they show while the mouse is there.
  async hover(text, icon) {
    const button = this.page.locator(`button:has(svg.lucide-${icon})`);
    const row = this.page.locator(".group", { hasText: text, has: button }).last();
    await row.hover();
    await row.locator(button).click();
  }
}

// The components of deep-agents-ui, in a page of ours.
class Deep extends Page {
  static async open(agent = "pilot") {
    const [{ assistant_id }] = await ask("/assistants/search", { graph_id: agent });
    return super.open(`${deepPage}/?${new URLSearchParams({ url, agent: assistant_id })}`);
  }

  async say(text) {
    await this.page.getByPlaceholder("Write your message...").fill(text);
    await this.button("Send").click();
  }
}

async function warned(answer, said) {
  const chat = await Chat.open();
  await chat.say("warn Genoa");
  await chat.button("Mark as Resolved").waitFor();
  await answer(chat);
  await chat.sees(said);
  await chat.rests();
}

const stories = {
  "agent-chat-ui: an answer is seen while it grows": async () => {
    const chat = await Chat.open();
    const word = randomUUID();
    await chat.say(`slowly ${word}`);
    await chat.sees(`Before ${word}`);
    await chat.misses(/ after[.]$/);
    await ask("/runs/wait", { assistant_id: "pilot", input: { messages: [{ role: "user", content: `go ${word}` }] } });
    await chat.sees(`Before ${word} after.`);
    await chat.rests();
  },

  "agent-chat-ui: a tool call and its result": async () => {
    const chat = await Chat.open();
    await chat.say("tide Dover");
    await chat.sees("Tool Result:");
    await chat.sees("Done. High water in Dover at 06:40.");
    assert.ok(await chat.page.getByRole("cell", { name: "Dover", exact: true }).count());
  },

  "agent-chat-ui: a second message, a reload, the history": async () => {
    const first = randomUUID();
    const chat = await Chat.open();
    await chat.hears(first, `You said: ${first}`);
    await chat.hears("and then", "You said: and then");
    await chat.page.reload();
    for (const text of [first, "and then"]) await chat.sees(`You said: ${text}`);
    const thread = chat.thread();
    await chat.page.locator("button:has(svg.lucide-square-pen)").click();
    await chat.page.getByText(`You said: ${first}`).waitFor({ state: "detached" });
    await chat.showHistory();
    await chat.button(first).click();
    await chat.sees("You said: and then");
    assert.equal(chat.thread(), thread);
  },

  "agent-chat-ui: an answer made again, both kept": async () => {
    const chat = await Chat.open();
    await chat.hears("table", /^Table \d+/);
    const first = await chat.page.getByText(/^Table \d+/).textContent();
    await chat.hover("Table", "refresh-ccw");
    await chat.sees("2 / 2");
    await chat.rests();
    await chat.misses(first);
    await chat.hover("Table", "chevron-left");
    await chat.sees("1 / 2");
    await chat.sees(first);
  },

  "agent-chat-ui: a message written anew": async () => {
    const chat = await Chat.open();
    await chat.hears("one", "You said: one");
    await chat.hover("one", "pencil");
    await chat.page.locator("textarea").first().fill("another");
    await chat.page.locator("button:has(svg.lucide-send-horizontal)").click();
    await chat.sees("You said: another");
    await chat.rests();
    await chat.misses("You said: one");
  },

  "agent-chat-ui: a question, accepted": () =>
    warned((chat) => chat.button("Accept").click(), "Done. accept: Genoa"),

  "agent-chat-ui: a question, edited": () =>
    warned(async (chat) => {
      await chat.page.locator("textarea").first().fill("Nice");
      await chat.button("Submit").click();
    }, "Done. edit: Nice"),

  "agent-chat-ui: a question, answered in words": () =>
    warned(async (chat) => {
      await chat.page.getByPlaceholder("Your response here...").fill("not today");
      await chat.button("Send Response").click();
    }, "Done. response: not today"),

  "agent-chat-ui: a question, ignored": () =>
    warned((chat) => chat.button("Ignore").click(), "Done. ignore:"),

  "agent-chat-ui: a question of interrupt_on is shown": async () => {
    const chat = await Chat.open("clerk");
    await chat.say("note low");
    await chat.sees("Human Interrupt");
    await chat.sees("action_requests");
  },

  "agent-chat-ui: a long run is stopped, and on after it": async () => {
    const chat = await Chat.open();
    await chat.say("watch Malta");
    await chat.page.getByRole("cell", { name: "Malta", exact: true }).waitFor();
    await chat.button("Cancel").click();
    await chat.rests();
    assert.deepEqual((await chat.ended()).map(({ status }) => status), ["interrupted"]);
    await chat.hears("hello again", "You said: hello again");
    await chat.page.reload();
    await chat.sees("You said: hello again");
  },

  "agent-chat-ui: the error of a run, and on after it": async () => {
    const chat = await Chat.open();
    await chat.hears("fail wind", "An error occurred. Please try again.");
    await chat.say("hello again");
    await chat.sees("You said: hello again");
  },

  "agent-chat-ui: an earlier turn written anew, then on from the first": async () => {
    const chat = await Chat.open();
    await chat.hears("tide Dover", "Done. High water in Dover");
    await chat.hears("two", "You said: two");
    await chat.hover("tide Dover", "pencil");
    await chat.page.locator("textarea").first().fill("tide Calais");
    await chat.page.locator("button:has(svg.lucide-send-horizontal)").click();
    await chat.sees("Done. High water in Calais");
    await chat.rests();
    await chat.misses("You said: two");
    await chat.hover("tide Calais", "chevron-left");
    await chat.sees("You said: two");
    await chat.hears("three", "You said: three");
    for (const text of ["Done. High water in Dover", "You said: two"]) await chat.sees(text);
    await chat.misses("High water in Calais");
  },

  "agent-chat-ui: a question of a subagent": async () => {
    const chat = await Chat.open();
    await chat.say("send warn Genoa");
    await chat.button("Accept").click();
    await chat.sees("Done. Done. accept: Genoa");
    await chat.rests();
  },

  "agent-chat-ui: a question, accepted after a reload": async () => {
    const chat = await Chat.open();
    await chat.say("warn Genoa");
    await chat.button("Accept").waitFor();
    await chat.page.reload();
    await chat.button("Accept").click();
    await chat.sees("Done. accept: Genoa");
    await chat.rests();
  },

  "agent-chat-ui: a thread that is not there": async () => {
    const chat = await Chat.open();
    await chat.page.goto(`${chat.page.url()}&threadId=${randomUUID()}`);
    await chat.say("hello");
    await chat.sees("An error occurred. Please try again.");
    await chat.sees("HTTP 404");
  },

  "deep-agents-ui: to-dos, a file, a subagent": async () => {
    const deep = await Deep.open();
    await deep.say("plan Dover");
    for (const text of ["Task 1 of 2", "general-purpose", /^Done[.] Done[.]/]) await deep.sees(text);
    await deep.rests();
    await deep.page.getByText("Files (State)").click();
    await deep.page.getByText("/plan.md").last().click();
    await deep.page.getByRole("heading", { name: "Dover" }).waitFor();
  },

  "deep-agents-ui: a thread of the list is opened": async () => {
    const first = randomUUID();
    const before = await Deep.open();
    await before.hears(first, `You said: ${first}`);
    const deep = await Deep.open();
    await deep.page.getByText(first, { exact: true }).click();
    await deep.rests();
    await deep.say("and then");
    await deep.sees("You said: and then");
    assert.equal(deep.thread(), before.thread());
  },

  "deep-agents-ui: a question is answered": async () => {
    const deep = await Deep.open();
    await deep.say("warn Genoa");
    await deep.rests();
    // The button of our page sees questions when it is opened.
    await deep.page.reload();
    await deep.button("Agree").click();
    await deep.page.getByText("Agree").waitFor({ state: "detached" });
    await deep.page.reload();
    await deep.sees("Done. accept: Genoa");
  },

  "deep-agents-ui: a question of interrupt_on is shown": async () => {
    const deep = await Deep.open("clerk");
    await deep.hears("note low", "file_path");
    await deep.page.reload();
    await deep.sees("file_path");
    await deep.button("Agree").waitFor();
  },

  "deep-agents-ui: a page that is opened again shows the run": async () => {
    const deep = await Deep.open();
    await deep.say("watch Malta");
    await deep.page.getByText("watch", { exact: true }).waitFor();
    await deep.page.reload();
    await deep.page.getByText("watch", { exact: true }).waitFor();
    await deep.button("Stop").click();
    await deep.rests();
  },

  "deep-agents-ui: a long run is stopped, and on after it": async () => {
    const deep = await Deep.open();
    await deep.say("watch Malta");
    await deep.page.getByText("watch", { exact: true }).waitFor();
    await deep.button("Stop").click();
    await deep.rests();
    assert.deepEqual((await deep.ended()).map(({ status }) => status), ["interrupted"]);
    await deep.say("hello again");
    await deep.sees("You said: hello again");
  },
};

async function draw() {
  let chat;
  for (const harbour of ["Genoa", "Calais", "Dover"]) {
    chat = await Chat.open();
    await chat.hears(`tide ${harbour}`, /^Done/);
  }
  await chat.showHistory();
  await chat.button("tide Dover").waitFor();
  await chat.page.screenshot({ path: picture });
}

if (picture) await draw();
const results = {};
for (const [name, story] of Object.entries(stories)) {
  results[name] = await story().then(() => null, (error) => String(error).slice(0, 300));
  await Promise.all(browser.contexts().map((each) => each.close()));
}
console.log(JSON.stringify(results));
await browser.close();
