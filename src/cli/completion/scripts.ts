/** Completion in each shell: a function that asks `usher __complete` for what may follow. */
export const COMPLETION_SHELLS = ["bash", "zsh", "fish"] as const;

export const COMPLETION_SCRIPTS: Readonly<Record<(typeof COMPLETION_SHELLS)[number], string>> = {
  bash: `# usher completion for bash: source <(usher completion bash)
_usher() {
  local current line directive
  local -a lines
  current="\${COMP_WORDS[COMP_CWORD]}"
  [ "$current" = "=" ] && current=""
  mapfile -t lines < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  for line in "\${lines[@]}"; do
    case "$line" in
      :[0-9]*) directive="$line" ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done
  if [ "$directive" = ":0" ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _usher usher kubectl-usher
`,
  zsh: `#compdef usher kubectl-usher
# usher completion for zsh: source <(usher completion zsh), after compinit
_usher() {
  local line directive value text
  local -a lines candidates
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "\${lines[@]}"; do
    case "$line" in
      :[0-9]*) directive="$line" ;;
      *)
        value="\${line%%$'\\t'*}"
        text="\${line#*$'\\t'}"
        [[ "$text" == "$line" ]] && text=""
        candidates+=("\${value//:/\\\\:}\${text:+:$text}")
        ;;
    esac
  done
  (( \${#candidates} )) && _describe 'usher' candidates
  [[ "$directive" == ":0" ]] && _files
  return 0
}
(( \${+functions[compdef]} )) && compdef _usher usher kubectl-usher
`,
  fish: `# usher completion for fish: usher completion fish | source
function __usher_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':0'
                __fish_complete_path "$current"
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c usher -f -a '(__usher_complete)'
complete -c kubectl-usher -f -a '(__usher_complete)'
`,
};
