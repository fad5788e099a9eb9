# Completion of posse for bash. posse itself knows what fits; this asks it.
_posse() {
    local IFS=$'\n'
    COMPREPLY=($(POSSE_COMPLETE=bash command posse -- "${COMP_LINE:0:COMP_POINT}" "$2" "$COMP_TYPE" 2>/dev/null))
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
if ((BASH_VERSINFO[0] > 4 || BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4)); then
    complete -o nosort -F _posse posse
else
    complete -F _posse posse
fi
