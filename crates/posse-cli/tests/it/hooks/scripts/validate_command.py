#!/usr/bin/env python3
"""PreToolUse on Bash: points the model to better commands."""
import json
import re
import sys

RULES = [
    (r"^\s*grep\b(?!.*\|)", "Use 'rg' (ripgrep) instead of 'grep'."),
    (r"^\s*find\s+\S+\s+-name\b", "Use 'rg --files -g PATTERN' instead of 'find -name'."),
    (r"\bcurl\b.*\|\s*(ba)?sh\b", "Never pipe a download into a shell."),
    (r"\bgit\s+push\b.*(--force|-f)\b", "Never push with force. Ask the user first."),
]


def problems(command):
    return [message for pattern, message in RULES if re.search(pattern, command)]


def main():
    try:
        data = json.load(sys.stdin)
    except json.JSONDecodeError as error:
        print(f"Error: invalid JSON input: {error}", file=sys.stderr)
        sys.exit(1)

    if data.get("tool_name") != "Bash":
        sys.exit(0)
    command = data.get("tool_input", {}).get("command", "")
    if not command:
        sys.exit(0)

    found = problems(command)
    if found:
        for message in found:
            print(f"• {message}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
