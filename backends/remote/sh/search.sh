# shellcheck shell=dash
# Names and contents for a search at the near end.
searchable() {
  if [ -d "$1" ]; then
    [ -r "$1/" ] && [ -x "$1/" ] && return 0
    printf 'Permission denied'
    return 23
  fi
  [ -e "$1" ] && return 22
  why "$1"
}
tree() {
  cd -- "$1/" || return 1
  for k in d f l; do
    find . -name .git -prune -o -type $k -print0
    printf '\0'
  done
  find . -name .git -prune -o ! -type d ! -type f ! -type l -print0
  printf '\0'
  [ "${me%%:*}" = 0 ] || find . -name .git -prune -o -type d ! -perm -555 -exec sh -c \
    'for f; do [ -r "$f" ] && [ -x "$f" ] || printf "%s\0" "$f"; done' sh {} +
  printf '\0'
  cd /
}
above() {
  x=$(cd -P -- "$1/" && pwd -P && echo .) || return 0
  a=${x%"$N".}
  [ "$a" != / ] || a=
  while ! [ -e "$a/.git" ] && ! [ -L "$a/.git" ]; do
    [ -n "$a" ] || return 0
    printf '%s\0' "${a##*/}"
    a=${a%/*}
    [ -f "$a/.gitignore" ] && [ -r "$a/.gitignore" ] && head -c 4194304 "$a/.gitignore"
    printf '\036%s' "$2"
  done
  printf 'top'
}
contents() {
  x=$2 y=$3
  cd -- "$1/" || return 1
  shift 3
  for f; do
    if [ ! -L "$f" ] && [ -f "$f" ]; then
      if [ -r "$f" ]; then printf f; head -c $y "$f" || printf '\036%s!' "$x"; else printf d; fi
    else printf g
    fi
    printf '\036%s.' "$x"
  done
  cd /
}
holding() {
  x=$2 y=$3 z=$4
  cd -- "$1/" || return 1
  shift 4
  grep -lsF -e "$x" -e "$y" -e "$z" -- "$@"
  for f; do [ -r "$f" ] || printf '%s\n' "$f"; done
  cd /
}
top() {
  readable "$1" && { head -c "$2" <"$1" && return; }
  answer $W F 0
  why "$1"
}
# A long file is held open between requests, and given a piece at a time.
hold() {
  # A redirection of `exec` that goes wrong would end the shell.
  readable "$1" && { true; } 7<"$1" && exec 7<"$1" && return
  why "$1"
}
piece() { dd bs=65536 count="$1" <&7; }
let_go() { exec 7<&-; }
# "NUMBER:line" of those that hold a text, "NUMBER-line" of those near. Some grep stop at a NUL byte.
numbered() {
  readable "$1" && command -v tr >/dev/null || return 1
  case $(tr -cd '\0' <"$1" | head -c 1 | wc -c) in *0) ;; *) return 1;; esac
  grep -nF -C "$3" -m "$4" -e "$2" <"$1"
  [ $? -le 1 ]
}
