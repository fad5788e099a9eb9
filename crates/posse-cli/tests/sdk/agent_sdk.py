"""Drives posse by the official Python SDK. Arguments: posse, then the names of the cases; none for all."""

import asyncio
import json
import os
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    query,
)
from claude_agent_sdk.types import PermissionRuleValue

POSSE = sys.argv[1]


def options(**more):
    return ClaudeAgentOptions(cli_path=POSSE, **more)


async def lines(prompt):
    """A prompt as a stream, which keeps the input open for answers."""
    yield {"type": "user", "message": {"role": "user", "content": prompt}}


async def ask(prompt, **more):
    """Returns all messages of a query."""
    return [message async for message in query(prompt=prompt, options=options(**more))]


def result(messages):
    [end] = [message for message in messages if isinstance(message, ResultMessage)]
    return end


def init(messages):
    [first] = [it for it in messages if isinstance(it, SystemMessage) and it.subtype == "init"]
    return first.data


def said(messages):
    blocks = [block for it in messages if isinstance(it, AssistantMessage) for block in it.content]
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


async def a_query_has_its_result():
    messages = await ask("hello")
    end = result(messages)
    assert (end.subtype, end.is_error, end.num_turns) == ("success", False, 1), end
    assert end.result == said(messages) == "You said: hello", end
    assert end.session_id == init(messages)["session_id"] and end.total_cost_usd > 0, end


async def prompts_follow_each_other_in_one_session():
    async with ClaudeSDKClient(options()) as client:
        ends = []
        for prompt in ["one", "two"]:
            await client.query(prompt)
            ends.append(result([message async for message in client.receive_response()]))
    assert [end.result for end in ends] == ["You said: one", "You said: two"], ends
    assert ends[0].session_id == ends[1].session_id


async def a_run_is_interrupted_and_the_session_continues():
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("take your time")
        interrupted = False
        async for message in client.receive_response():
            if isinstance(message, StreamEvent) and not interrupted:
                interrupted = True
                await client.interrupt()
            if isinstance(message, ResultMessage):
                end = message
        assert interrupted and (end.is_error, end.terminal_reason) == (True, "interrupted"), end
        await client.query("again")
        end = result([message async for message in client.receive_response()])
        assert end.result == "You said: again", end


async def a_callback_decides_about_tools():
    asked = []

    async def decide(tool, given, context):
        asked.append((tool, given["file_path"], context.tool_use_id is not None))
        if given["file_path"] == "no.txt":
            return PermissionResultDeny(message="not this one")
        return PermissionResultAllow(updated_input={**given, "content": "from the callback"})

    messages = await ask(lines("write no.txt"), can_use_tool=decide)
    assert "not this one" in result(messages).result, result(messages)
    assert [denial["tool_name"] for denial in result(messages).permission_denials] == ["Write"]
    result(await ask(lines("write yes.txt"), can_use_tool=decide))
    assert not Path("no.txt").exists()
    assert Path("yes.txt").read_text() == "from the callback"
    assert asked == [("Write", "no.txt", True), ("Write", "yes.txt", True)], asked


async def an_approval_brings_rules_and_modes():
    asked = []
    update = PermissionUpdate(
        type="addRules",
        rules=[PermissionRuleValue(tool_name="Edit", rule_content="kept/**")],
        behavior="allow",
        destination="session",
    )

    async def decide(tool, given, context):
        asked.append(given["file_path"])
        return PermissionResultAllow(updated_permissions=[update])

    async with ClaudeSDKClient(options(can_use_tool=decide)) as client:
        for name in ["kept/1.txt", "kept/2.txt", "other.txt"]:
            await client.query(f"write {name}")
            result([message async for message in client.receive_response()])
            assert Path(name).exists(), name
    assert asked == ["kept/1.txt", "other.txt"], asked

    async def accept(tool, given, context):
        asked.append(given["file_path"])
        mode = PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
        return PermissionResultAllow(updated_permissions=[mode])

    asked.clear()
    async with ClaudeSDKClient(options(can_use_tool=accept)) as client:
        for name in ["a.txt", "b.txt"]:
            await client.query(f"write {name}")
            result([message async for message in client.receive_response()])
    assert asked == ["a.txt"], asked


async def the_mode_is_set_as_far_as_it_may():
    async with ClaudeSDKClient(options(can_use_tool=None)) as client:
        await client.set_permission_mode("acceptEdits")
        await client.query("write mode.txt")
        result([message async for message in client.receive_response()])
        assert Path("mode.txt").exists()
        try:
            await client.set_permission_mode("bypassPermissions")
            raise AssertionError("it was accepted")
        except Exception as error:
            assert "when posse starts" in str(error), error


async def the_model_is_set():
    answered, ends = [], []
    async with ClaudeSDKClient(options(model="claude-opus-5-5")) as client:
        for model in ["", "haiku", None]:
            if model != "":
                await client.set_model(model)
            await client.query("hello")
            messages = [message async for message in client.receive_response()]
            answered += [it.model for it in messages if isinstance(it, AssistantMessage)]
            ends.append(result(messages))
    assert answered == ["claude-opus-5-5", "claude-haiku-5-5", "claude-opus-5-5"], answered
    assert [list(end.model_usage) for end in ends] == [[model] for model in answered], ends


def requests():
    """Returns the bodies of the model's requests so far."""
    with urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/_scripted/requests") as answer:
        return [json.loads(request["body"]) for request in json.load(answer)]


def read():
    """Returns the texts that the model has read in the last request, and whether the last call failed."""
    texts, failed = [], None
    for message in requests()[-1]["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                failed = block.get("is_error", False)
                texts += [part.get("text", "") for part in block["content"]]
            elif block["type"] == "text" and message["role"] != "assistant":
                texts.append(block["text"])
    return "\n".join(texts), failed


def hook(event, callback, matcher=None, **more):
    return {event: [HookMatcher(matcher=matcher, hooks=[callback], **more)]}


def specific(event, **fields):
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


async def a_hook_denies_a_call():
    seen = []

    async def guard(given, tool_use_id, context):
        seen.append((given["tool_name"], tool_use_id == given["tool_use_id"]))
        reason = "not by this hook"
        return specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=reason)

    hooks = hook("PreToolUse", guard, matcher="Write")
    result(await ask(lines("write denied.txt"), permission_mode="acceptEdits", hooks=hooks))
    assert not Path("denied.txt").exists()
    told, failed = read()
    assert failed and "not by this hook" in told, told
    assert seen == [("Write", True)], seen


async def a_hook_changes_an_input():
    async def change(given, tool_use_id, context):
        other = {"file_path": "changed.txt", "content": "from the hook"}
        return specific("PreToolUse", permissionDecision="allow", updatedInput=other)

    hooks = hook("PreToolUse", change, matcher="Write")
    result(await ask(lines("write original.txt"), hooks=hooks))
    assert not Path("original.txt").exists()
    assert Path("changed.txt").read_text() == "from the hook"
    assert read()[1] is False


async def a_hook_adds_to_a_result():
    async def add(given, tool_use_id, context):
        return specific("PostToolUse", additionalContext=f"{given['tool_name']} was seen")

    hooks = hook("PostToolUse", add)
    result(await ask(lines("write seen.txt"), permission_mode="acceptEdits", hooks=hooks))
    assert Path("seen.txt").exists()
    told, failed = read()
    assert not failed and "Write was seen" in told, told


async def a_hook_holds_the_end_back():
    active = []

    async def hold(given, tool_use_id, context):
        active.append(given["stop_hook_active"])
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "not finished"}

    before = len(requests())
    end = result(await ask(lines("hello"), hooks=hook("Stop", hold)))
    assert active == [False, True], active
    assert (len(requests()) - before, end.num_turns) == (2, 2), end
    assert "not finished" in read()[0], read()


async def a_hook_adds_to_a_prompt_and_refuses_one():
    async def look(given, tool_use_id, context):
        if "secret" in given["prompt"]:
            return {"decision": "block", "reason": "no secrets"}
        return specific("UserPromptSubmit", additionalContext="the day is Monday")

    async with ClaudeSDKClient(options(hooks=hook("UserPromptSubmit", look))) as client:
        await client.query("hello")
        result([message async for message in client.receive_response()])
        told, before = read()[0], len(requests())
        assert "the day is Monday" in told and "hello" in told, told
        await client.query("a secret")
        end = result([message async for message in client.receive_response()])
        assert end.is_error and "no secrets" in str(end.errors), end
        assert len(requests()) == before, "the model was asked"


async def a_hook_that_fails_is_passed_over_or_blocks():
    async def fail(given, tool_use_id, context):
        raise ValueError("broken")

    async def late(given, tool_use_id, context):
        await asyncio.Event().wait()

    for name, callback, more in [("throws", fail, {}), ("late", late, {"timeout": 1})]:
        for on_failure in [None, "block"]:
            path = f"{name}-{on_failure}.txt"
            hooks = hook("PreToolUse", callback, on_failure=on_failure, **more)
            result(await ask(lines(f"write {path}"), permission_mode="acceptEdits", hooks=hooks))
            blocks = on_failure == "block"
            assert Path(path).exists() != blocks, path
            told, failed = read()
            assert failed == blocks and ("onFailure: block" in told) == blocks, told


async def hooks_that_never_run_are_refused():
    async def guard(given, tool_use_id, context):
        return {}

    try:
        await ask(lines("hello"), hooks=hook("CwdChanged", guard))
        raise AssertionError("hooks were ignored")
    except Exception as error:
        assert "never happens" in str(error) and "CwdChanged" in str(error), error


async def agents_of_the_program_are_started():
    bird = AgentDefinition(description="Knows a word.", prompt="You are a bird.", tools=["Read"])
    messages = await ask("ask the bird", agents={"bird": bird}, allowed_tools=["Agent"])
    assert "bird" in init(messages)["agents"], init(messages)
    assert "the word is heron" in result(messages).result, result(messages)
    started = [it for it in messages if getattr(it, "subtype", "") == "task_started"]
    assert [it.data["subagent_type"] for it in started] == ["bird"], started


async def an_answer_has_its_schema():
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "legs": {"type": "integer"}},
        "required": ["name", "legs"],
    }
    messages = await ask("a bird", output_format={"type": "json_schema", "schema": schema})
    end = result(messages)
    assert end.structured_output == {"name": "heron", "legs": 2}, end
    assert end.num_turns == 2, "the first answer lacked a key"
    other = {"type": "object", "required": ["wings"]}
    try:
        messages = await ask("a bird", output_format={"type": "json_schema", "schema": other})
        raise AssertionError(result(messages))
    except Exception as error:
        assert "does not match" in str(error), error


async def a_session_is_resumed():
    given = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
    first = result(await ask("first", session_id=given, system_prompt="Be brief."))
    assert first.session_id == given
    again = result(await ask("second", resume=given, system_prompt="Be brief."))
    assert (again.session_id, again.result) == (given, "You said: second"), again
    newest = result(await ask("third", continue_conversation=True))
    assert newest.session_id == given
    fork = result(await ask("fourth", resume=given, fork_session=True))
    assert fork.session_id != given
    for more, words in [({"session_id": given}, "already"), ({"resume": "0" * 8}, "no session")]:
        try:
            await ask("fifth", **more)
            raise AssertionError("it was accepted")
        except Exception as error:
            assert words in str(error), error


async def partial_messages_arrive():
    messages = await ask("hello", include_partial_messages=True)
    events = [message.event for message in messages if isinstance(message, StreamEvent)]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
    pieces = [event["delta"].get("text", "") for event in events if "delta" in event]
    assert "".join(pieces) == said(messages), pieces


async def options_are_used_or_told():
    told = []
    Path("CLAUDE.md").write_text("Call everybody Heron.")
    messages = await ask(
        "hello",
        tools=["Read", "Bash", "WebSearch"],
        setting_sources=[],
        settings='{"permissions": {"deny": ["Bash"]}, "sandbox": {"enabled": true}}',
        mcp_servers={"calc": {"type": "stdio", "command": "calc"}},
        strict_mcp_config=True,
        fallback_model="claude-haiku-5-5",
        model="sonnet",
        effort="low",
        max_thinking_tokens=2048,
        permission_mode="plan",
        max_turns=3,
        max_budget_usd=1.5,
        add_dirs=["/tmp"],
        stderr=told.append,
    )
    first = init(messages)
    assert first["tools"] == ["Read"], first
    assert first["permissionMode"] == "plan" and first["model"].startswith("claude-sonnet"), first
    assert first["mcp_servers"] == [{"name": "calc", "status": "failed"}], first
    told = "\n".join(told)
    for words in ["WebSearch", "calc", "--fallback-model", "sandbox"]:
        assert words in told, (words, told)
    assert result(messages).result == "You said: hello"


ALL = [value for value in list(globals().values()) if asyncio.iscoroutinefunction(value)]
CASES = {case.__name__: case for case in ALL if case not in (lines, ask)}

print("claude-agent-sdk", version("claude-agent-sdk"), "Python", sys.version.split()[0])
for name in sys.argv[2:] or CASES:
    asyncio.run(CASES[name]())
    print("held:", name)
