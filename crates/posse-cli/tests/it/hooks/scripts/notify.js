#!/usr/bin/env node
// Notification: keeps what the user should look at in a file that a status bar reads.
const fs = require('fs');
const path = require('path');

let input = '';
process.stdin.on('data', (chunk) => (input += chunk));
process.stdin.on('end', () => {
  const { message, title, notification_type: type } = JSON.parse(input);
  const dir = path.join(process.env.CLAUDE_PROJECT_DIR || process.cwd(), '.claude');
  fs.mkdirSync(dir, { recursive: true });
  fs.appendFileSync(path.join(dir, 'notifications.txt'), `${type}: ${title || 'Claude Code'}: ${message}\n`);
  process.exit(0);
});
