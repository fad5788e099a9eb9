#!/usr/bin/env node
// PostToolUse on Edit|Write|MultiEdit: sends problems in JavaScript files back to the model.
import { readFileSync } from 'node:fs';

const input = JSON.parse(readFileSync(0, 'utf8'));
const file = input.tool_input?.file_path;
if (!file || !/\.[cm]?[jt]sx?$/.test(file)) process.exit(0);

const problems = readFileSync(file, 'utf8')
  .split('\n')
  .flatMap((line, index) => [
    ...(/\bconsole\.log\(/.test(line) ? [`line ${index + 1}: no console.log`] : []),
    ...(/\bvar\s/.test(line) ? [`line ${index + 1}: use const or let, not var`] : []),
  ]);

if (problems.length > 0) {
  console.log(JSON.stringify({
    decision: 'block',
    reason: `Lint found ${problems.length} problem(s):\n${problems.join('\n')}`,
  }));
}
