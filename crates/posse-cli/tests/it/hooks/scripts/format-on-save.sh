#!/usr/bin/env bash
# PostToolUse on Edit|Write: formats the file that was just written.
file=$(jq -r '.tool_input.file_path // empty')
[ -n "$file" ] && [ -f "$file" ] || exit 0

case "$file" in
  *.json)
    jq --indent 2 . "$file" > "$file.formatted" && mv "$file.formatted" "$file"
    ;;
  *.sh | *.md | *.txt)
    sed -i 's/[[:space:]]*$//' "$file"
    ;;
esac

echo "formatted $(basename "$file")"
