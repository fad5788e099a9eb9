# Completion of posse for fish. posse itself knows what fits; this asks it.
complete --command posse --erase
complete --command posse --no-files --keep-order --arguments '(POSSE_COMPLETE=fish command posse -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor) 2>/dev/null)'
