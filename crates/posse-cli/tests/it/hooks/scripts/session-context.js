#!/usr/bin/env node
// SessionStart: loads the notes of the project and the last commits.
const { execSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const input = JSON.parse(fs.readFileSync(0, 'utf8'));
const root = process.env.CLAUDE_PROJECT_DIR || input.cwd;
const parts = [`Session began by: ${input.source}`];

try {
  parts.push(`Last commits:\n${execSync('git log -3 --format=%s', { cwd: root, encoding: 'utf8' }).trim()}`);
} catch {
  // Not a repository.
}
const notes = path.join(root, 'NOTES.md');
if (fs.existsSync(notes)) parts.push(`Notes:\n${fs.readFileSync(notes, 'utf8').trim()}`);

console.log(JSON.stringify({
  hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: parts.join('\n\n') },
}));
