"""Uses `posse mcp serve` by the official Python package `mcp`, in both eras. Argument: posse."""

import asyncio
import os
import sys
from importlib.metadata import version

from mcp import Client, StdioServerParameters

POSSE = sys.argv[1]
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


def server():
    return StdioServerParameters(command=POSSE, args=["mcp", "serve"], env=dict(os.environ), cwd=os.getcwd())


async def until_idle(client):
    """The last session, once nobody works on it."""
    while True:
        session = (await client.call_tool("session", {})).structured_content
        if not session["held"]:
            return session


async def use(mode):
    told = []
    begun = asyncio.Event()

    async def progress(number, total, message):
        told.append((number, message))
        begun.set()

    async with Client(server(), mode=mode) as client:
        assert client.protocol_version == VERSIONS[mode], client.protocol_version
        assert client.server_info.name == "posse"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["run"].input_schema["required"] == ["prompt"], tools["run"]
        assert tools["session"].annotations.read_only_hint is True

        ran = await client.call_tool("run", {"prompt": "hello"}, progress_callback=progress)
        assert not ran.is_error and ran.content[0].text == "You said: hello", ran
        session = ran.structured_content["session_id"]
        assert told == [(1, f"agent {session} works")], told

        denied = await client.call_tool("run", {"prompt": "write made.txt"})
        assert denied.structured_content["denied"] == ["Write"], denied
        assert not os.path.exists("made.txt")

        begun.clear()
        call = client.call_tool("run", {"prompt": "take your time"}, progress_callback=progress)
        task = asyncio.create_task(call)
        await begun.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        stopped = await until_idle(client)
        assert stopped["first_prompt"] == "take your time" and not stopped["is_finished"], stopped

        wrong = await client.call_tool("run", {"prompt": "x", "permission_mode": "bypassPermissions"})
        assert wrong.is_error and "no `permission_mode`" in wrong.content[0].text, wrong


print("mcp", version("mcp"), "Python", sys.version.split()[0])
for mode in VERSIONS:
    asyncio.run(use(mode))
    print("held:", mode)
