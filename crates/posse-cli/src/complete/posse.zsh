#compdef posse
# Completion of posse for zsh. posse itself knows what fits; this asks it.
_posse() {
    local -a before=("${(@Q)words[1,CURRENT-1]}") closed open
    local line
    for line in "${(@f)$(POSSE_COMPLETE=zsh command posse -- "$before[@]" "${(Q)PREFIX}" 2>/dev/null)}"; do
        case ${line%%$'\t'*} in
            '') ;;
            */ | *=) open+=("$line[1,-1]") ;;
            *) closed+=("$line[1,-1]") ;;
        esac
    done
    # posse has escaped the colons of values; the tab stands where the description begins.
    closed=("${(@)closed/$'\t'/:}")
    open=("${(@)open/$'\t'/:}")
    (( $#closed )) && _describe -V value closed
    (( $#open )) && _describe -V value open -S ''
}
if [[ $funcstack[1] == _posse ]]; then
    _posse "$@"
else
    compdef _posse posse
fi
