#!/bin/bash
# PreToolUse on everything: keeps a log of the tools that were called.
INPUT=$(cat)
LOG="$CLAUDE_PROJECT_DIR/.claude/audit.log"
mkdir -p "$(dirname "$LOG")"
TOOL=$(echo "$INPUT" | jq -r '.tool_name')
WHAT=$(echo "$INPUT" | jq -r '.tool_input.command // .tool_input.file_path // "-"')
echo "$(echo "$INPUT" | jq -r '.hook_event_name') $TOOL ${WHAT#"$CLAUDE_PROJECT_DIR"/}" >> "$LOG"
exit 0
