#!/usr/bin/env python3
"""Stop: the agent may not stop while the tests fail."""
import json
import os
import subprocess
import sys

data = json.load(sys.stdin)

# We sent it back once already. Let it stop now, or it would never end.
if data.get("stop_hook_active"):
    sys.exit(0)

tests = subprocess.run(
    ["sh", "./run-tests.sh"],
    cwd=os.environ.get("CLAUDE_PROJECT_DIR", data["cwd"]),
    capture_output=True,
    text=True,
)
if tests.returncode != 0:
    last = (tests.stdout + tests.stderr).strip().splitlines()[-5:]
    print(json.dumps({
        "decision": "block",
        "reason": "The tests fail. Fix them before you stop:\n" + "\n".join(last),
    }))
sys.exit(0)
