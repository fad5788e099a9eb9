#!/bin/bash
# PreToolUse on Edit|Write: nobody edits files on main.
cd "$CLAUDE_PROJECT_DIR" || exit 0
branch=$(git symbolic-ref --short HEAD 2>/dev/null)

if [ "$branch" = "main" ] || [ "$branch" = "master" ]; then
  jq -n --arg branch "$branch" '{
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: "You are on \($branch). Create a feature branch before you edit files."
    }
  }'
fi
