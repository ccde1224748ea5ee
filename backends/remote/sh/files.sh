# shellcheck shell=dash
# Reading and listing. `answer $W F 0` tells that what was printed so far cannot be finished.
readable() { [ -f "$1" ] && [ -r "$1" ]; }
access() { readable "$1" || why "$1"; }
whole() {
  readable "$1" && stat -L -c '%s %d %i' -- "$1" && { cat <"$1" && return; }
  answer $W F 0
  why "$1"
}
window() {
  readable "$1" || { why "$1"; return; }
  z=$(stat -L -c %s -- "$1") || { why "$1"; return; }
  printf '%s\n' "$z"
  if [ "$z" -le "$2" ]; then cat <"$1"; else dd bs=8192 count=1 <"$1"; fi && return
  answer $W F 0
  why "$1"
}
lines() {
  stat -L -c %s -- "$1" && endings <"$1" && tail -c 1 <"$1" | wc -l &&
    tail -n "+$2" <"$1" | head -n "$3" | head -c "$4"
}
# busybox's wc takes three times as long as its tr.
endings() {
  if [ -z "$find_prints" ] && command -v tr >/dev/null; then tr -dc '\n' | wc -c; else wc -l; fi
}
line_size() { tail -n "+$2" <"$1" | head -n 1 | wc -c; }
beginning() { readable "$1" || { why "$1"; return; }; dd bs="$2" count=1 <"$1" || why "$1"; }
exists() {
  [ -e "$1" ] && return 0
  m=$(stat -L -c . -- "$1" 2>&1) && return 0
  case $m in *'o such file'* | *'ot a directory'*) return 1;; esac
  blame "$m" "$1"
}
is_folder() { [ -d "$1" ] && return 0; [ -e "$1" ] && return 1; why "$1"; }
make_folder() {
  [ -d "$1" ] && return 0
  m=$(mkdir -p -- "$1" 2>&1) && return 0
  blame "$m" "$1"
}
entries() {
  if ! [ -d "$1" ]; then
    [ -e "$1" ] && { inner "$1/"; return 22; }
    why "$1"
    return
  fi
  [ -r "$1" ] || { printf 'Permission denied'; return 23; }
  if [ "$find_prints" = 1 ]; then
    find "$1/" -mindepth 1 -maxdepth 1 -printf '%y%Y%f\0%l\0'
    return 0
  fi
  for f in "${1%/}"/* "${1%/}"/.[!.]* "${1%/}"/..?*; do
    b=- l=
    if [ -L "$f" ]; then
      k=l l=$(readlink -n -- "$f"; echo .) l=${l%?}
      [ -e "$f" ] || b=N
    elif [ -d "$f" ]; then k=d
    elif [ -f "$f" ]; then k=f
    elif [ -p "$f" ]; then k=p
    elif [ -S "$f" ]; then k=s
    elif [ -c "$f" ] || [ -b "$f" ]; then k=c
    elif [ -e "$f" ]; then k=U
    else continue
    fi
    printf '%s%s%s\0%s\0' "$k" "$b" "${f##*/}" "$l"
  done
}
