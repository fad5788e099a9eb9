#!/usr/bin/env python3
"""Records what Claude Code does with hooks, case by case, against posse's scripted model.

    npm install --prefix DIR @anthropic-ai/claude-code@2.1.325
    python3 record.py DIR/node_modules/.bin/claude POSSE [NAME...] > recorded.jsonl

With names, only those cases run. JOBS (default 2) cases run at a time. Two recordings are equal byte for byte.

A case of cases.json names its scene: how the model behaves, the prompt, files, flags and settings. The case itself is the
first hook; `more` lists further hooks. A hook has:

    event, matcher     where it is configured; "*" configures it for every event
    stdout or json     what it prints; stderr and code (default 0) likewise
    run                a shell line that it runs before it prints
    once               it does this only the first time; later it prints nothing and exits with 0
    handler            further fields of its handler
    http               it is an http hook, and this is the status of the answer

A line of recorded.jsonl has:

    inputs             what the hooks read, in order; with several hooks, `hook` is the number of the reader
    files              the files named ran* that exist at the end: the tools of the scenes make them
    requests           for each answered request the agent, the number of the rule, and `told`: what is new in it
    runs               for each run of the program the exit code, what it showed, its results and its errors

`told` holds tool results, and the lines that contain a word beginning with HOOK-, TOOL- or USER-. The prompts of the other
program are not kept.
"""

import concurrent.futures
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request

HERE = pathlib.Path(__file__).parent
MARK = re.compile(r"(HOOK|TOOL|USER)-[A-Z0-9]+")
EVENTS = """SessionStart Setup UserPromptSubmit UserPromptExpansion PreToolUse PermissionRequest PermissionDenied PostToolUse
PostToolUseFailure PostToolBatch Notification MessageDisplay SubagentStart SubagentStop Stop StopFailure TeammateIdle TaskCreated
TaskCompleted PreCompact PostCompact PreModelSwitch PostModelSwitch Elicitation ElicitationResult ConfigChange
InstructionsLoaded CwdChanged FileChanged DirectoryAdded WorktreeCreate WorktreeRemove SessionEnd""".split()
# What differs between two runs, and its replacement.
VARYING = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"toolu_[0-9a-z_]+"), "TOOLU"),
    (re.compile(r"msg_[0-9a-z_]+"), "MSG"),
    (re.compile(r"\ba[0-9a-f]{16}\b"), "AGENT"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "COMMIT"),
    (re.compile(r"claude-[0-9a-f]{4}-cwd"), "CWD"),
]
# Fields of inputs that hold durations, token counts, or text of the other program.
BLANKED = {
    "duration_ms", "totalDurationMs", "totalTokens", "usage", "harnessSectionHash", "compact_summary",
    "context_tokens", "seconds_since_last_response", "estimated_cache_write_usd", "subagentTokens",
}


def main():
    program, posse, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    cases = json.loads((HERE / "cases.json").read_text())
    wanted = [case for case in cases["cases"] if not names or case["name"] in names]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for line in pool.map(lambda case: record(program, posse, cases["scenes"], case), wanted):
            print(json.dumps(line, sort_keys=True, ensure_ascii=False), flush=True)


def record(program, posse, scenes, case):
    scene = scenes[case["scene"]]
    with tempfile.TemporaryDirectory(prefix="hooks") as base:
        base = pathlib.Path(os.path.realpath(base))
        work = base / "w"
        prepare(work, {**scene, **case})
        (base / "model.toml").write_text("\n".join(scene["model"]))
        servers = []
        settings = {**scene.get("settings", {}), **case.get("settings", {}), "hooks": {}}
        for number, hook in enumerate([case, *case.get("more", [])]):
            if "event" not in hook:
                continue
            handler = http_handler(base, number, hook, servers) if "http" in hook else command(base, number, hook)
            group = {"hooks": [{**handler, **hook.get("handler", {})}]}
            if "matcher" in hook:
                group["matcher"] = hook["matcher"]
            for event in EVENTS if hook["event"] == "*" else [hook["event"]]:
                settings["hooks"].setdefault(event, []).append(group)
        (base / "settings.json").write_text(json.dumps(settings))
        model = subprocess.Popen(
            [posse, "scripted-model", str(base / "model.toml"), "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        try:
            address = re.search(r"http://\S+", model.stdout.readline()).group()
            runs = [run(program, address, base, scene, case, case.get("flags", []))]
            if "resume" in case:
                runs.append(run(program, address, base, scene, case, case["resume"]))
            requests = json.load(urllib.request.urlopen(f"{address}/_scripted/requests"))
        finally:
            model.kill()
            model.wait()
            for server in servers:
                server.shutdown()
        line = {
            "name": case["name"],
            "inputs": inputs(base, case.get("event") == "*"),
            "files": sorted(path.name for path in work.glob("ran*")),
            "requests": told(base, requests),
            "runs": runs,
        }
        line = plain(base, line)
        return {**line, "inputs": short(line["inputs"])}


def prepare(work, scene):
    """Creates a repository with the files of a scene and, if the scene has the MCP server, with its configuration."""
    work.mkdir()
    server = {"mcpServers": {"small": {"command": "python3", "args": [str(HERE / "server.py")]}}}
    named = {"mcp.json": json.dumps(server)} if scene.get("server") else {}
    for name, text in {**scene.get("files", {}), **named}.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "-b", "main"], cwd=work, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], cwd=work, check=True)


def command(base, number, hook):
    """Returns the handler of a script that keeps its input and prints what the case says."""
    name = f"hook{number or ''}"
    (base / f"{name}.stdout").write_text(words(hook))
    (base / f"{name}.stderr").write_text(hook.get("stderr", ""))
    once = f"[ -e {base}/{name}.said ] && exit 0; touch {base}/{name}.said" if hook.get("once") else ":"
    path = base / f"{name}.sh"
    path.write_text(
        f"#!/bin/sh\ninput=$(cat); printf '%s\\n' \"{number} $input\" >> {base}/inputs\n{once}\n{hook.get('run', ':')}\n"
        f"cat {base}/{name}.stdout; cat {base}/{name}.stderr >&2; exit {hook.get('code', 0)}\n"
    )
    path.chmod(0o755)
    return {"type": "command", "command": str(path)}


def words(hook):
    return json.dumps(hook["json"]) if "json" in hook else hook.get("stdout", "")


def http_handler(base, number, hook, servers):
    """Returns the handler of a server that does the same."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            read = self.rfile.read(int(self.headers["content-length"])).decode()
            with open(base / "inputs", "a") as file:
                file.write(f"{number} {read}\n")
            body = words(hook).encode()
            self.send_response(hook["http"])
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    servers.append(server)
    return {"type": "http", "url": f"http://127.0.0.1:{server.server_port}/"}


def run(program, address, base, scene, case, more):
    """Runs the program once. Returns what it showed and how it ended."""
    prompts = case.get("prompts", scene.get("prompts"))
    prompt = case.get("prompt", scene.get("prompt", "go"))
    flags = [flag.replace("BASE", str(base)) for flag in [*scene.get("flags", []), *more]]
    if prompts:
        flags += ["--input-format", "stream-json"]
    elif "--resume" not in more:
        flags = [prompt, *flags]
    running = subprocess.Popen(
        [program, "-p", *flags, "--model", "claude-opus-5-5", "--settings", str(base / "settings.json"),
         "--output-format", "stream-json", "--verbose", "--include-hook-events"],
        cwd=base / "w", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(base / "stderr", "w"), text=True,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(base / "home"),
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "any",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_TELEMETRY": "1",
            **scene.get("environment", {}),
        },
    )
    late = threading.Timer(60, running.kill)
    late.start()
    waiting = list(prompts or [])

    def say():
        if waiting:
            message = {"type": "user", "message": {"role": "user", "content": waiting.pop(0)}}
            running.stdin.write(json.dumps(message) + "\n")
            running.stdin.flush()
        else:
            running.stdin.close()

    say()
    shown, ends = [], []
    for line in running.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            shown.append(line.strip()[:200])
            continue
        if event["type"] == "result":
            ends.append({
                key: event.get(key) for key in
                ["subtype", "is_error", "num_turns", "result", "stop_reason", "terminal_reason", "errors", "deferred_tool_use"]
                if event.get(key) is not None
            })
            if event.get("permission_denials"):
                ends[-1]["denied"] = [one["tool_name"] for one in event["permission_denials"]]
            if prompts and not running.stdin.closed:
                say()
        elif event["type"] == "system" and event["subtype"] == "hook_response":
            shown.append(f"hook {event['hook_name']}: {event['outcome']} {event.get('exit_code')}")
        elif event["type"] == "system" and "hook" not in event["subtype"] and MARK.search(line):
            kept = {key: value for key, value in event.items() if isinstance(value, str) and MARK.search(value)}
            shown.append(f"{event['subtype']} {event.get('level', '')}: {json.dumps(kept, ensure_ascii=False)[:300]}")
    code = running.wait()
    late.cancel()
    return {"code": code, "shown": shown, "ends": ends, "stderr": (base / "stderr").read_text()[-300:]}


def inputs(base, whole):
    """Returns the inputs in order. Hooks of one moment run at the same time, so theirs are in the order of the hooks.
    Fields that every input has are kept only in cases of all events."""
    path = base / "inputs"
    if not path.exists():
        return []
    read = []
    for line in path.read_text().splitlines():
        number, text = line.split(" ", 1)
        read.append((int(number), json.loads(text)))
    # A hook runs once in each moment, so a number that comes again begins the next one.
    ordered, together, moment = [], [], None
    for number, one in read:
        key = (one["hook_event_name"], one.get("tool_use_id"), one.get("agent_id"))
        if key != moment or number in {earlier for earlier, _ in together}:
            ordered += sorted(together, key=lambda entry: entry[0])
            together, moment = [], key
        together.append((number, one))
    ordered += sorted(together, key=lambda entry: entry[0])
    several = len({number for number, _ in ordered}) > 1
    common = set() if whole else {"session_id", "transcript_path", "cwd", "prompt_id"}
    kept = [(number, {key: value for key, value in one.items() if key not in common}) for number, one in ordered]
    return [{"hook": number, **blank(one)} if several else blank(one) for number, one in kept]


def blank(value):
    if isinstance(value, dict):
        return {key: "…" if key in BLANKED else blank(inner) for key, inner in value.items()}
    return [blank(inner) for inner in value] if isinstance(value, list) else value


def short(value):
    """Returns inputs without the long texts in them, which the other program wrote."""
    if isinstance(value, dict):
        return {key: short(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [short(inner) for inner in value]
    return f"{value[:60]}…" if isinstance(value, str) and len(value) > 300 else value


def told(base, requests):
    """Returns for each answered request what earlier requests of its agent did not contain."""
    kept, seen = [], {}
    for request in requests:
        if request["rule"] is None or not request["path"].startswith("/v1/messages"):
            continue
        body = json.loads(request["body"]) if isinstance(request["body"], str) else request["body"]
        body["messages"] = plain(base, body["messages"])
        agent = agent_of(body)
        found = list(words_of(body))
        before = seen.get(agent, [])
        seen[agent] = found
        left = list(before)
        new = [one for one in found if not (one in left and (left.remove(one) or True))]
        kept.append({"agent": agent, "rule": request["rule"], "told": new})
    return kept


def agent_of(body):
    first, last = json.dumps(body["messages"][0]), json.dumps(body["messages"][-1])
    return "sub" if "USER-SUB" in first else "hook" if "HOOK-ASKED {" in last else "main"


def words_of(body):
    system = body.get("system", "")
    for block in blocks(system):
        if MARK.search(block.get("text", "")):
            yield f"system prompt: {around(block['text'])}"
    begun = False
    for message in body["messages"]:
        begun = begun or message["role"] == "assistant"
        if message["role"] == "assistant":
            continue
        for block in blocks(message["content"]):
            if block["type"] == "tool_result":
                text = "".join(part.get("text", "") for part in blocks(block["content"]))
                kind = "tool_result (error)" if block.get("is_error") else "tool_result"
                if len(text) > 400:
                    text = "… ".join(line.strip() for line in text.splitlines() if MARK.search(line)) or f"{text[:120]}…"
                yield f"{message['role']} {kind}: {text}"
            elif block["type"] == "text" and MARK.search(block["text"]):
                yield f"{message['role']} text: {around(block['text'])}"
            elif block["type"] == "text" and begun and len(block["text"]) < 200:
                yield f"{message['role']} text: {block['text'][:60]}"


def blocks(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def around(text):
    """Returns the marked words with the text next to them: the rest of their line and the line before it."""
    spans = []
    for mark in MARK.finditer(text):
        line = text.rfind("\n", 0, mark.start())
        start = max(0, mark.start() - 90, text.rfind("\n", 0, max(line, 0)) + 1)
        end = min(len(text), mark.end() + 60, text.find("\n", mark.end()) + 1 or len(text))
        if spans and start <= spans[-1][1]:
            spans[-1][1] = end
        else:
            spans.append([start, end])
    shown = [("" if start == 0 else "…") + text[start:end] + ("" if end == len(text) else "…") for start, end in spans]
    return " … ".join(shown)


def plain(base, value):
    if isinstance(value, dict):
        return {key: plain(base, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(base, inner) for inner in value]
    if not isinstance(value, str):
        return value
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(base))
    value = value.replace(str(base), "BASE").replace(slug, "-BASE")
    for pattern, word in VARYING:
        value = pattern.sub(word, value)
    return value


if __name__ == "__main__":
    main()
