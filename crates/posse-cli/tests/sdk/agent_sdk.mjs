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

const specific = (hookEventName, fields) => ({ hookSpecificOutput: { hookEventName, ...fields } });
const hook = (event, callback, more = {}) => ({ [event]: [{ hooks: [callback], ...more }] });

/** Returns the bodies of the model's requests so far. */
async function requests() {
  const answer = await fetch(`${process.env.ANTHROPIC_BASE_URL}/_scripted/requests`);
  return (await answer.json()).map((request) => JSON.parse(request.body));
}

/** Returns the texts that the model has read in the last request, and whether the last call failed. */
async function read() {
  const texts = [];
  let failed;
  for (const { role, content } of (await requests()).at(-1).messages) {
    for (const block of typeof content === "string" ? [{ type: "text", text: content }] : content) {
      if (block.type === "tool_result") {
        failed = block.is_error ?? false;
        texts.push(...block.content.map((part) => part.text ?? ""));
      } else if (block.type === "text" && role !== "assistant") texts.push(block.text);
    }
  }
  return { told: texts.join("\n"), failed };
}

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

  async a_hook_denies_a_call() {
    const seen = [];
    const guard = async (input, id) => {
      seen.push([input.tool_name, id === input.tool_use_id]);
      const permissionDecisionReason = "not by this hook";
      return specific("PreToolUse", { permissionDecision: "deny", permissionDecisionReason });
    };
    const hooks = hook("PreToolUse", guard, { matcher: "Write" });
    await ask("write denied.txt", { permissionMode: "acceptEdits", hooks });
    assert(!existsSync("denied.txt"));
    const { told, failed } = await read();
    assert(failed && told.includes("not by this hook"), told);
    assert.deepEqual(seen, [["Write", true]]);
  },

  async a_hook_changes_an_input() {
    const updatedInput = { file_path: "changed.txt", content: "from the hook" };
    const change = async () => specific("PreToolUse", { permissionDecision: "allow", updatedInput });
    await ask("write original.txt", { hooks: hook("PreToolUse", change, { matcher: "Write" }) });
    assert(!existsSync("original.txt"));
    assert.equal(readFileSync("changed.txt", "utf8"), "from the hook");
    assert.equal((await read()).failed, false);
  },

  async a_hook_adds_to_a_result() {
    const add = async (input) =>
      specific("PostToolUse", { additionalContext: `${input.tool_name} was seen` });
    await ask("write seen.txt", { permissionMode: "acceptEdits", hooks: hook("PostToolUse", add) });
    assert(existsSync("seen.txt"));
    const { told, failed } = await read();
    assert(!failed && told.includes("Write was seen"), told);
  },

  async a_hook_holds_the_end_back() {
    const active = [];
    const hold = async (input) => {
      active.push(input.stop_hook_active);
      return input.stop_hook_active ? {} : { decision: "block", reason: "not finished" };
    };
    const before = (await requests()).length;
    const end = result(await ask("hello", { hooks: hook("Stop", hold) }));
    assert.deepEqual(active, [false, true]);
    assert.deepEqual([(await requests()).length - before, end.num_turns], [2, 2]);
    assert((await read()).told.includes("not finished"));
  },

  async a_hook_adds_to_a_prompt_and_refuses_one() {
    const look = async (input) =>
      input.prompt.includes("secret")
        ? { decision: "block", reason: "no secrets" }
        : specific("UserPromptSubmit", { additionalContext: "the day is Monday" });
    const hooks = hook("UserPromptSubmit", look);
    await ask("hello", { hooks });
    const { told } = await read();
    assert(told.includes("the day is Monday") && told.includes("hello"), told);
    const before = (await requests()).length;
    const messages = [];
    try {
      for await (const message of query({ prompt: "a secret", options: options({ hooks }) })) {
        messages.push(message);
      }
    } catch {
      // It exits with an error after the result.
    }
    assert.match(String(result(messages).errors), /no secrets/);
    assert.equal((await requests()).length, before, "the model was asked");
  },

  async a_hook_that_fails_is_passed_over_or_blocks() {
    const fails = {
      throws: [async () => { throw new Error("broken"); }, {}],
      late: [() => new Promise(() => {}), { timeout: 1 }],
    };
    for (const [name, [callback, more]] of Object.entries(fails)) {
      for (const onFailure of ["continue", "block"]) {
        const path = `${name}-${onFailure}.txt`;
        const hooks = hook("PreToolUse", callback, { onFailure, ...more });
        await ask(`write ${path}`, { permissionMode: "acceptEdits", hooks });
        const blocks = onFailure === "block";
        assert.equal(existsSync(path), !blocks, path);
        const { told, failed } = await read();
        assert.equal(failed, blocks, told);
        assert.equal(told.includes("onFailure: block"), blocks, told);
      }
    }
  },

  async hooks_that_never_run_are_refused() {
    const hooks = hook("CwdChanged", async () => ({}));
    await assert.rejects(ask("hello", { hooks }), /CwdChanged never happens/);
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
