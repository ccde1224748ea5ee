# shellcheck shell=dash
# A command's output goes through `sink`, which ends when all have closed it: that is told by the
# request's own answer. `S` tells that the shell has ended. Meanwhile a watcher waits for the end of
# the lane's stdin, which comes when the near end is gone, and kills what bears the mark.
run() {
  ran=1 w=
  # Nobody else may read the stdin that is for the command.
  if [ "$3" = 0 ]; then
    ( IFS= read -r x <&3; [ -n "$keep" ] || sweep "$1" ) >/dev/null &
    w=$!
  fi
  { begin "$@" | sink "$4" 3<&- 4>&-; } 4>&1
  [ -z "$w" ] || { kill -9 $w; wait $w; }
  variables() { :; }
}
begin() {
  cd -- "$2" || { answer $W C 0 >&4; return; }
  quiet
  if [ -n "$locale" ]; then LC_ALL=${locale#.}; else unset LC_ALL; fi
  variables
  export PWD REMOTEHANDS_COMMAND_ID="$1"
  if [ "$3" = 0 ]; then launch "$5" 5</dev/null; else $take$3 <&3 | launch "$5" 5<&0; fi
  answer $W S $? >&4
}
launch() { printf '%s' "$T" | "$1" 9<&0 <&5 2>&1 3<&- 4>&- 5<&-; }
enter() {
  if [ -d "$1" ]; then [ -x "$1" ] && return 0; printf 'Permission denied'; return 23; fi
  [ -e "$1" ] && { inner "$1/"; return 22; }
  why "$1"
}
sink() {
  [ -n "$1" ] || exec cat
  umask 077
  trap '' XFSZ
  ulimit -f "$cap"
  exec tee -- "$1"
}
marked() {
  pids=
  if [ "$grep_nul" = 1 ]; then
    pids=$(grep -lsF "REMOTEHANDS_COMMAND_ID=$1" /proc/[0-9]*/environ)
  elif [ "$grep_nul" = 2 ]; then
    pids=$(strings -f /proc/[0-9]*/environ | grep -F "REMOTEHANDS_COMMAND_ID=$1" |
      while IFS=: read -r f x; do printf '%s ' "$f"; done)
  else
    for f in /proc/[0-9]*/environ; do
      [ -r "$f" ] || continue
      # Without a newline at its end, `read` fails but has read.
      x=
      while IFS= read -r x <&8 || [ -n "$x" ]; do
        case $x in *"REMOTEHANDS_COMMAND_ID=$1"*) pids="$pids $f"; break;; esac
        x=
      done 8<"$f"
    done
  fi
}
sweep() {
  for r in TERM KILL KILL KILL KILL KILL; do
    marked "$1"
    [ -n "$pids" ] || return 0
    for f in $pids; do f=${f%/environ}; kill -$r "${f#/proc/}"; done
    sleep "$nap"
  done
}
# Lanes whose near end is gone without their having seen it, and what they run.
bury() {
  for n; do
    [ -n "$keep" ] || sweep "$n."
    for f in /proc/[0-9]*; do
      x=
      # Without a newline at its end, `read` fails but has read.
      IFS= read -r x <"$f/cmdline"
      case $x in *"remotehands-$n."*) kill -9 "${f#/proc/}";; esac
    done
  done
}
processes() {
  cat /proc/[0-9]*/stat
  printf '\036'
  [ -z "$1" ] || { marked "$1"; printf '%s ' $pids; }
}
kept_size() { stat -c %s -- "$1"; }
signal() { kill -"$@"; true; }
kept_folder() {
  umask 077
  for b in "$TMPDIR" /tmp /var/tmp; do
    case $b in /*) ;; *) continue;; esac
    d=$b/remotehands-${me%:*}
    mkdir "$d"
    [ "$(stat -c '%u %a %F' -- "$d")" = "${me%:*} 700 directory" ] || d=$d-$1
    # What a session left behind that could not clean up; a living one writes now and then.
    [ -n "$2" ] || find "$d" -mindepth 1 -maxdepth 1 -type d -mmin +1440 -exec rm -rf {} +
    if mkdir -p "$d/$1" && true >"$d/$1/.x"; then
      rm -f "$d/$1/.x"
      umask "$mask"
      printf %s "$d/$1"
      return 0
    fi
  done
  umask "$mask"
  return 1
}
forget_folder() {
  d=$1
  [ -n "$2" ] || rm -rf -- "$d"
  shift 2
  [ $# = 0 ] || rm -f -- "$@"
  rmdir -- "$d"
  rmdir -- "${d%/*}"
  true
}
