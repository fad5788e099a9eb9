#!/bin/bash
# PreToolUse on Bash: stops recursive deletions and commands that print secrets.
set -euo pipefail

command=$(jq -r '.tool_input.command // ""')

if grep -Eq 'rm[[:space:]]+(-[a-zA-Z]*r[a-zA-Z]*f|-[a-zA-Z]*f[a-zA-Z]*r)' <<<"$command"; then
  echo "Blocked: 'rm -rf' is not allowed in this project. Delete single files instead." >&2
  exit 2
fi

if grep -Eq '(^|[^a-zA-Z])(\.env|id_rsa|credentials\.json)([^a-zA-Z]|$)' <<<"$command"; then
  echo "Blocked: this command touches a file with secrets." >&2
  exit 2
fi

exit 0
