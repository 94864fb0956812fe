"""Completions of bash, zsh and fish: commands, their verbs and flags, the words that a flag takes, topics of help."""
import re

BASH = """# bash completion of dtrain
_dtrain() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flag= command= word words=
    if [[ $current == "=" ]]; then
        flag=$before current=
    elif [[ $before == "=" ]]; then
        flag=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $before == --* ]]; then
        flag=$before
    fi
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
        %(commands)s) command=$word; break ;;
        esac
    done
    case $command:$flag in
%(choices)s
    *:--*) return ;; # files
    esac
    case $command:$current in
%(words)s
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2> /dev/null
}
complete -o bashdefault -o default -F _dtrain dtrain
"""

ZSH = """#compdef dtrain
# zsh completion of dtrain
local -a commands=(
%(commands)s
)
case ${words[2]} in
%(cases)s
*)
    _arguments %(run)s \\
        '1: :{ _describe command commands; _files }' '*:file:_files'
    ;;
esac
"""


def said(flag):
    """The completed flag, with "=" if it takes a value."""
    return flag.name + ("=" if flag.type else "")


def verbs(dtrain):
    """The verbs of each command that has some."""
    return {command.name: command.verbs for command in dtrain.commands if command.verbs}


def topics(dtrain):
    """Topics of help, including kinds, which have help by their names."""
    names = [topic.name for topic in dtrain.topics]
    kinds = [kind.name for topic in dtrain.topics for kind in topic.kinds]
    return [word for word in dict.fromkeys(names + kinds) if " " not in word]


def choices(dtrain):
    """{COMMAND:FLAG: words}; the same flag may take other words in another command."""
    found = {}
    for command in (None, *dtrain.commands):
        for flag in dtrain.flags(command):
            if flag.choices:
                found[f"{command.name if command else ''}:{flag.name}"] = " ".join(flag.choices)
    return found


def bash(dtrain):
    rows = [f'    {pattern}) COMPREPLY=($(compgen -W "{words}" -- "$current")); return ;;'
            for pattern, words in choices(dtrain).items()]
    names = [command.name for command in dtrain.commands]
    words = {"help:*": topics(dtrain), ":-*": [*map(said, dtrain.flags()), "--help", "--version"], ":*": names}
    words |= {f"{command.name}:-*": map(said, dtrain.flags(command)) for command in dtrain.commands}
    words |= {f"{command}:*": own for command, own in verbs(dtrain).items()}
    lines = [f'    {pattern}) words="{" ".join(own)}" ;;' for pattern, own in words.items()]
    return BASH % {"choices": "\n".join(rows), "commands": "|".join(names), "words": "\n".join(lines)}


def quoted(text):
    """The text in single quotes, for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def summary(text):
    """The text without a final part in parentheses."""
    return text.rpartition(" (")[0] or text


def zsh_flag(flag):
    text = re.sub(r"([\[\]:\\])", r"\\\1", summary(flag.text))
    value = f"({' '.join(flag.choices)})" if flag.choices else "_files"
    often = "*" if flag.type == "strings" else ""
    return quoted(f"{often}{said(flag)}[{text}]" + (f":{flag.type}:{value}" if flag.type else ""))


def zsh_flags(dtrain, command=None):
    return " ".join(map(zsh_flag, dtrain.flags(command)))


def zsh(dtrain):
    own_verbs = verbs(dtrain)
    cases = []
    for command in dtrain.commands:
        words = topics(dtrain) if command.name == "help" else own_verbs.get(command.name)
        flags = zsh_flags(dtrain, command)
        first = f"'2:word:({' '.join(words)})'" if words else ""
        cases.append(f"{command.name}) _arguments '1: :' {first} {flags} '*:file:_files' ;;")
    described = [f"    {quoted(command.name + ':' + command.text)}" for command in dtrain.commands]
    return ZSH % {"commands": "\n".join(described), "cases": "\n".join(cases), "run": zsh_flags(dtrain)}


def fish_flag(flag, condition):
    words = f" -x -a {quoted(' '.join(flag.choices))}" if flag.choices else " -r" if flag.type else ""
    return f"complete -c dtrain -n {condition} -l {flag.name[2:]}{words} -d {quoted(summary(flag.text))}"


def fish(dtrain):
    lines = ["# fish completion of dtrain"]
    lines += [f"complete -c dtrain -n __fish_use_subcommand -a {command.name} -d {quoted(command.text)}"
              for command in dtrain.commands]
    words = " ".join(command.name for command in dtrain.commands)
    lines += [fish_flag(flag, f"'not __fish_seen_subcommand_from {words}'") for flag in dtrain.flags()]
    for command in dtrain.commands:
        condition = f"'__fish_seen_subcommand_from {command.name}'"
        lines += [fish_flag(flag, condition) for flag in dtrain.flags(command)]
    for command, words in {"help": topics(dtrain), **verbs(dtrain)}.items():
        lines.append(f"complete -c dtrain -f -n '__fish_seen_subcommand_from {command}' -a '{' '.join(words)}'")
    return "\n".join(lines) + "\n"
