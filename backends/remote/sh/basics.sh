# shellcheck shell=dash
# Functions leave what they found on stdout and tell by their status how it went: see REFUSALS in
# shell_script.py. Messages of the system are told apart in the C locale, in the words of the GNU
# and of the musl library.
answer() { printf '\036%s %s %s\n' "$1" "$2" "$3"; }
blame() {
  case $1 in
    *'o space left'* | *'uota exceeded'* | *'ile too large'*) printf %s "$1"; return 25;;
    *'ermission denied'* | *'not permitted'* | *'ead-only file'*) printf %s "$1"; return 23;;
    *'ot a directory'* | *'ile exists'*) inner "$2"; return 22;;
    *'o such file'*) missing "$2"; return 20;;
    *'ame too long'*) set -- "the name is too long for the target's file system";;
    *'oo many levels'* | *'ymbolic link loop'*) set -- 'too many levels of symbolic links';;
  esac
  printf %s "${1:-it changed while it was looked at}"
  return 26
}
why() {
  if [ -d "$1" ]; then [ -r "$1" ] && printf '/\0'; names "$1"; return 21; fi
  if [ -e "$1" ]; then
    [ -p "$1" ] && { printf 'is a FIFO'; return 24; }
    [ -S "$1" ] && { printf 'is a socket'; return 24; }
    [ -c "$1" ] && { printf 'is a character device'; return 24; }
    [ -b "$1" ] && { printf 'is a block device'; return 24; }
    [ -r "$1" ] || { printf 'Permission denied'; return 23; }
    blame "$(cat <"$1" 2>&1 >/dev/null)" "$1"
    return
  fi
  blame "$(stat -L -c . -- "$1" 2>&1)" "$1"
}
inner() {
  a=$1 b=
  while a=${a%/*}; [ -n "$a" ]; do
    [ -e "$a" ] && ! [ -d "$a" ] && b=$a
  done
  printf %s "$b"
}
missing() {
  a=$1 i=1
  while case $a in */) ;; *) false;; esac; do a=${a%/}; done
  b=$a a=${a%/*}
  while ! [ -d "$a/" ] && [ -n "$a" ]; do b=$a a=${a%/*} i=$((i + 1)); done
  [ -r "$a/" ] || return 0
  printf '%s\0' "$i"
  [ -L "$b" ] && readlink -n -- "$b"
  printf '\0'
  names "$a"
}
names() {
  c=0
  for f in "${1%/}"/* "${1%/}"/.[!.]* "${1%/}"/..?*; do
    [ -e "$f" ] || [ -L "$f" ] || continue
    if [ -d "$f" ]; then printf '%s/\0' "${f##*/}"; else printf '%s\0' "${f##*/}"; fi
    c=$((c + 1))
    [ $c -lt 20000 ] || break
  done
}
