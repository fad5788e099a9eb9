#!/usr/bin/env python3
"""Checks in Claude Code, against posse's scripted model, that the scripts of scripts.json have the effect they name.

    npm install --prefix DIR @anthropic-ai/claude-code@2.1.325
    python3 check_scripts.py DIR/node_modules/.bin/claude POSSE [SCRIPT...]

Each script is copied to .claude/hooks of a project, where its settings fragment expects it. `effect` lists the content
of files (null: the file does not exist), what the model must and must not have read, word for word, the number of
requests, and the result.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.dont_write_bytecode = True

from record import HERE, blocks, prepare, run


def main():
    program, posse, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    wrong = 0
    for one in json.loads((HERE / "scripts.json").read_text()):
        if not names or one["script"] in names:
            seen = effect(program, posse, one)
            wrong += seen != one["effect"]
            print(one["script"], "as written" if seen == one["effect"] else json.dumps(seen, ensure_ascii=False), flush=True)
    sys.exit(wrong)


def effect(program, posse, one):
    with tempfile.TemporaryDirectory(prefix="hooks") as base:
        base = pathlib.Path(base)
        work = base / "w"
        prepare(work, one)
        (work / ".claude" / "hooks").mkdir(parents=True)
        shutil.copy(HERE / "scripts" / one["script"], work / ".claude" / "hooks")
        (work / ".claude" / "settings.json").write_text(json.dumps(one["settings"]))
        (base / "settings.json").write_text("{}")
        (base / "model.toml").write_text("\n".join(one["model"]))
        model = subprocess.Popen(
            [posse, "scripted-model", str(base / "model.toml"), "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        try:
            address = re.search(r"http://\S+", model.stdout.readline()).group()
            ran = run(program, address, base, one, {}, [])
            requests = json.load(urllib.request.urlopen(f"{address}/_scripted/requests"))
        finally:
            model.kill()
            model.wait()
        answered = [request["body"] for request in requests if request["rule"] is not None]
        read = "\n".join(text for body in answered for text in texts(json.loads(body) if isinstance(body, str) else body))
        wanted = one["effect"]
        seen = {}
        if "files" in wanted:
            seen["files"] = {name: (work / name).read_text() if (work / name).exists() else None for name in wanted["files"]}
        if "told" in wanted:
            seen["told"] = [words for words in wanted["told"] if words in read]
        if "untold" in wanted:
            seen["untold"] = [words for words in wanted["untold"] if words not in read]
        return {**seen, "requests": len(answered), "result": ran["ends"][-1]["result"] if ran["ends"] else ran["stderr"]}


def texts(body):
    for message in body["messages"]:
        for block in blocks(message["content"]):
            for part in blocks(block["content"]) if block["type"] == "tool_result" else [block]:
                yield part.get("text", "")


main()
