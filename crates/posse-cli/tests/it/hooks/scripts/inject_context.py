#!/usr/bin/env python3
"""UserPromptSubmit: gives the model the state of the project with each prompt."""
import json
import os
import subprocess
import sys
from pathlib import Path


def git(*args):
    done = subprocess.run(["git", *args], capture_output=True, text=True, cwd=os.environ["CLAUDE_PROJECT_DIR"])
    return done.stdout.strip()


data = json.load(sys.stdin)
lines = [f"Current branch: {git('branch', '--show-current')}"]

sprint = Path(data["cwd"]) / "SPRINT.md"
if sprint.exists():
    lines.append(f"Sprint goal: {sprint.read_text().strip()}")
if "deploy" in data.get("prompt", "").lower():
    lines.append("Reminder: deployments need a green pipeline.")

print(json.dumps({
    "hookSpecificOutput": {
        "hookEventName": "UserPromptSubmit",
        "additionalContext": "\n".join(lines),
    }
}))
