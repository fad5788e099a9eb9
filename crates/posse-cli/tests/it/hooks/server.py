#!/usr/bin/env python3
"""A small MCP server over stdio. Of its tools `say` answers, `fail` returns an error, and `ask` asks the user."""

import json
import sys

EMPTY = {"type": "object", "properties": {}}
TOOLS = [{"name": name, "description": name, "inputSchema": EMPTY} for name in ["say", "fail", "ask"]]
QUESTION = {"message": "TOOL-QUESTION", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(name):
    if name != "ask":
        return {"content": [{"type": "text", "text": "TOOL-ORIGINAL"}], "isError": name == "fail"}
    send(id="question", method="elicitation/create", params=QUESTION)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            return {"content": [{"type": "text", "text": "TOOL-ANSWER " + json.dumps(message.get("result"))}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    answers = {
        "initialize": lambda: {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"},
        },
        "tools/list": lambda: {"tools": TOOLS},
        "tools/call": lambda: call(message["params"]["name"]),
        "ping": dict,
    }
    if message["method"] in answers:
        send(id=message["id"], result=answers[message["method"]]())
    else:
        send(id=message["id"], error={"code": -32601, "message": "no such method"})
