# The story of docs/teams.md: declare a team, run it, watch it, talk to it, kill it, resume it, read the result.
# Wants posse on the PATH, an empty directory to be in, and $STORY, where the script of the models is.
# `cargo xtask story` writes what it says into the page.

# A command as the reader would type it, and what it says.
show() { echo; echo "\$ $1"; eval "$1" 2>&1; }
# Waits until something is so.
until_so() { for _ in $(seq 600); do if eval "$1" >/dev/null 2>&1; then return; fi; sleep 0.1; done; echo "never: $1"; exit 1; }

git init -q . && git config user.email story@example.org && git config user.name story
printf '#!/bin/sh\necho $(($1 - $2))\n' >add.sh
printf '#!/bin/sh\necho $(($1 + $2))\n' >mul.sh
cat >check.sh <<'END'
#!/bin/sh
# check.sh add|mul: fails unless the script of that name is right
case $1 in add) want=5 ;; mul) want=6 ;; esac
got=$(./$1.sh 2 3)
[ "$got" = "$want" ] || { echo "$1.sh 2 3 is $got, not $want"; exit 1; }
END
chmod +x *.sh
mkdir -p .posse/teams
cat >.posse/teams/sums.toml <<'END'
description = "Makes the sums of this repository right."

[lead]
prompt = "Say at the end what was wrong, and how you know that it is right now."

[roles.dev]                     # dev-1 and dev-2
count = 2
prompt = "You mend one script at a time, and nothing else."
permission_mode = "acceptEdits"
budget_usd = 2.0

[roles.reviewer]
prompt = "You try what others have mended, with odd numbers. You change nothing."
takes = ["review"]

[[tasks]]
subject = "add.sh must add"
role = "dev"
check = "./check.sh add"

[[tasks]]
subject = "mul.sh must multiply"
role = "dev"
check = "./check.sh mul"

[[tasks]]
subject = "Try both scripts"
role = "review"
blocked_by = [1, 2]
END
git add . && git commit -qm "sums that are wrong"
posse scripted-model --port 0 --json "$STORY" >model.json &
model=$!
until_so '[ -s model.json ]'
export ANTHROPIC_BASE_URL=$(sed 's/.*"url": *"\([^"]*\)".*/\1/' model.json)
rm model.json

posse trust --yes >/dev/null 2>&1
show 'posse team check'
show 'posse team list --declared'
show 'posse team run sums "make the sums right" --permission-mode acceptEdits --allowedTools "Bash(./*)" >result.txt 2>progress.txt &'
team=$!
until_so 'posse task list --team sums --json | grep -q "\"id\":3,.*\"status\":\"in_progress\""'
until_so 'grep -q "Try both scripts: reviewer" progress.txt'
until_so 'curl -s $ANTHROPIC_BASE_URL/_scripted/requests | grep -q "Task 3 is yours"'
show 'cat progress.txt'
show 'posse team show'
show 'posse mail send reviewer@sums "Negative numbers count too."'
show 'posse team attach reviewer --once'
show "kill -9 $team"
wait $team 2>/dev/null
show 'posse team run sums --resume --allowedTools "Bash(./*)"'
show 'posse team show'
show 'git diff --stat'
kill $model
