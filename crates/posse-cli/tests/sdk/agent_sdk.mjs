// Drives posse by the official TypeScript SDK. Arguments: the SDK's folder, posse, then the names of the cases; none
// for all.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, posse, ...names] = process.argv.slice(2);
const { query } = await import(pathToFileURL(join(sdk, "sdk.mjs")));

const options = (more = {}) => ({ pathToClaudeCodeExecutable: posse, ...more });

/** A prompt as a stream, which keeps the input open for answers. */
async function* lines(...prompts) {
  for (const content of prompts) {
    yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null };
  }
}

/** Returns all messages of a query. */
async function ask(prompt, more) {
  const messages = [];
  for await (const message of query({ prompt, options: options(more) })) messages.push(message);
  return messages;
}

const only = (messages, type) => messages.filter((message) => message.type === type);
const result = (messages) => only(messages, "result").at(-1);
const init = (messages) => messages.find((message) => message.subtype === "init");

const cases = {
  async a_query_has_its_result() {
    const messages = await ask("hello", { systemPrompt: "Be brief." });
    assert.equal(result(messages).result, "You said: hello");
    assert.equal(result(messages).session_id, init(messages).session_id);
  },

  async prompts_follow_each_other_in_one_session() {
    const ends = only(await ask(lines("one", "two")), "result");
    assert.deepEqual(ends.map((end) => end.result), ["You said: one", "You said: two"]);
  },

  async a_run_is_interrupted_and_the_session_continues() {
    let end;
    const ended = new Promise((resolve) => (end = resolve));
    async function* open() {
      yield* lines("take your time");
      await ended;
      yield* lines("again");
    }
    const run = query({ prompt: open(), options: options({ includePartialMessages: true }) });
    let interrupted = false;
    const ends = [];
    for await (const message of run) {
      if (message.type === "stream_event" && !interrupted) {
        interrupted = true;
        await run.interrupt();
      }
      if (message.type === "result") {
        ends.push([message.terminal_reason, message.result]);
        end();
      }
    }
    assert.deepEqual(ends, [["interrupted", undefined], ["completed", "You said: again"]]);
  },

  async a_callback_decides_about_tools() {
    const asked = [];
    const canUseTool = async (tool, input) => {
      asked.push([tool, input.file_path]);
      if (input.file_path === "no.txt") return { behavior: "deny", message: "not this one" };
      const rules = [{ toolName: "Edit", ruleContent: "kept/**" }];
      const update = { type: "addRules", rules, behavior: "allow", destination: "session" };
      return { behavior: "allow", updatedInput: input, updatedPermissions: [update] };
    };
    const ends = only(
      await ask(lines("write no.txt", "write kept/1.txt", "write kept/2.txt"), { canUseTool }),
      "result",
    );
    assert.match(ends[0].result, /not this one/);
    assert(!existsSync("no.txt") && existsSync("kept/1.txt"));
    assert.equal(readFileSync("kept/2.txt", "utf8"), "from the model");
    assert.deepEqual(asked, [["Write", "no.txt"], ["Write", "kept/1.txt"]]);
  },

  async the_mode_and_the_model_are_set() {
    let release;
    const released = new Promise((resolve) => (release = resolve));
    async function* later() {
      await released;
      yield* lines("write mode.txt");
    }
    const run = query({ prompt: later(), options: options() });
    await run.setPermissionMode("acceptEdits");
    await run.setModel("claude-haiku-5-5");
    release();
    const models = [];
    for await (const message of run) {
      if (message.type === "assistant") models.push(message.message.model);
      if (message.type === "result") break;
    }
    assert(existsSync("mode.txt"));
    assert.deepEqual(models, ["claude-haiku-5-5", "claude-haiku-5-5"]);
  },

  async hooks_are_refused() {
    const hooks = { PreToolUse: [{ hooks: [async () => ({})] }] };
    await assert.rejects(ask("hello", { hooks }), /does not run hooks yet.*PreToolUse/);
  },

  async agents_of_the_program_are_started() {
    const bird = { description: "Knows a word.", prompt: "You are a bird.", tools: ["Read"] };
    const messages = await ask("ask the bird", { agents: { bird }, allowedTools: ["Agent"] });
    assert(init(messages).agents.includes("bird"));
    assert.match(result(messages).result, /the word is heron/);
  },

  async an_answer_has_its_schema() {
    const properties = { name: { type: "string" }, legs: { type: "integer" } };
    const schema = { type: "object", properties, required: ["name", "legs"] };
    const messages = await ask("a bird", { outputFormat: { type: "json_schema", schema } });
    assert.deepEqual(result(messages).structured_output, { name: "heron", legs: 2 });
  },

  async a_session_is_resumed() {
    const first = result(await ask("first"));
    const again = result(await ask("second", { resume: first.session_id }));
    assert.equal(again.session_id, first.session_id);
    const fork = result(await ask("third", { resume: first.session_id, forkSession: true }));
    assert.notEqual(fork.session_id, first.session_id);
    const newest = result(await ask("fourth", { continue: true }));
    assert.equal(newest.result, "You said: fourth");
  },

  async partial_messages_arrive() {
    const messages = await ask("hello", { includePartialMessages: true });
    const pieces = only(messages, "stream_event").map((message) => message.event.delta?.text ?? "");
    assert.equal(pieces.join(""), "You said: hello");
  },

  async options_are_used_or_told() {
    let told = "";
    const messages = await ask("hello", {
      tools: ["Read", "Bash"],
      settingSources: [],
      settings: { permissions: { deny: ["Bash"] } },
      mcpServers: { calc: { type: "stdio", command: "calc" } },
      strictMcpConfig: true,
      fallbackModel: "claude-haiku-5-5",
      model: "sonnet",
      effort: "low",
      thinking: { type: "adaptive" },
      permissionMode: "plan",
      stderr: (text) => (told += text),
    });
    assert.deepEqual(init(messages).tools, ["Read"]);
    assert.equal(init(messages).permissionMode, "plan");
    assert.deepEqual(init(messages).mcp_servers, [{ name: "calc", status: "failed" }]);
    assert.match(told, /--fallback-model/);
    assert.match(told, /calc/);
  },
};

const { version } = JSON.parse(readFileSync(join(sdk, "package.json"), "utf8"));
console.log("@anthropic-ai/claude-agent-sdk", version, "node", process.version);
for (const name of names.length > 0 ? names : Object.keys(cases)) {
  await cases[name]();
  console.log("held:", name);
}
process.exit(0);
