# shellcheck shell=dash
# What `toolkit check` asks of a target, in one trip: NAME=VALUE, each ended by NUL. POSIX only.
# In: CHECK_CWD, the folder that tools work in; CHECK_REMOVE, "1" to remove what commands have left.
exec 2>/dev/null </dev/null
say() { printf '%s=%s\0' "$1" "$2"; }
has() { command -v "$1" >/dev/null; }
version() { has "$1" && say "$1" "$("$1" --version | head -n 1)"; }

writable() {
  [ -w "$1" ] || return 1
  # busybox asks only the bits, which say nothing to root on a read-only mount.
  real=$(cd -P "$1" && pwd -P) longest=0 flags=
  while read -r x at x options x; do
    case ${real%/}/ in "${at%/}"/*) ;; *) continue ;; esac
    [ ${#at} -lt "$longest" ] || longest=${#at} flags=$options
  done </proc/mounts
  case ,$flags, in *,ro,*) return 1 ;; esac
}

uid=$(id -u)
say uid "$uid"
say user "$(id -un)"
say system "$(uname -s)"
say kernel "$(uname -r)"
say machine "$(uname -m)"
sh=$(command -v sh)
case $sh in /*) ;; *) sh=/bin/sh ;; esac # busybox knows itself by name only
say sh "$(readlink -f "$sh")"
has bash && say bash "$(bash --norc -c 'printf %s "$BASH_VERSION"')"
version rg
version git
version tar

# The engine is what has started this shell; where there is none, any Python that is on the path.
python=$(readlink "/proc/$PPID/exe")
case ${python##*/} in *python*) ;; *) python=$(command -v python3 || command -v /usr/libexec/platform-python) ;; esac
if [ -n "$python" ]; then
  say python_path "$python"
  "$python" -I -S -c '
import os, sys
say = lambda name, value: os.write(1, ("%s=%s\0" % (name, value)).encode())
say("python", "%d.%d.%d" % sys.version_info[:3])
try:
    import ctypes
    libc = ctypes.CDLL(None)
    say("ctypes", 1)
except Exception:
    say("ctypes", 0)
else:
    how = ctypes.create_string_buffer(24)
    call = (ctypes.c_long(437), ctypes.c_int(-100), ctypes.c_char_p(b"/"), how, ctypes.c_size_t(24))
    say("openat2", int(sys.platform == "linux" and libc.syscall(*call) >= 0))
'
fi

if [ ! -e "$CHECK_CWD" ]; then say cwd missing
elif [ ! -d "$CHECK_CWD" ]; then say cwd file
elif [ ! -x "$CHECK_CWD" ]; then say cwd closed
elif writable "$CHECK_CWD"; then say cwd writable
else say cwd read-only
fi

temp=${TMPDIR:-/tmp}
say temp "$temp"
if writable "$temp"; then say temp_writable 1; else say temp_writable 0; fi
say temp_free "$(df -Pk "$temp" | tail -n 1 | { read -r x x x free x; printf %s "$free"; })"

# What engines and lanes keep: TEMP/remotehands-UID[-WORD]/SESSION/output-N.log.
set --
seen=
for base in "$TMPDIR" /tmp /var/tmp; do
  case $base in /*) base=$(cd -P "$base" && pwd -P) || continue ;; *) continue ;; esac
  case $seen in *":$base:"*) continue ;; esac
  seen="$seen:$base:"
  for folder in "$base/remotehands-$uid" "$base/remotehands-$uid-"*; do
    [ -d "$folder" ] && [ ! -L "$folder" ] && [ -O "$folder" ] && set -- "$@" "$folder"
  done
done
kept() {
  name=$1
  shift
  find "$@" -type f -exec stat -c %s {} + | {
    files=0 bytes=0
    while read -r size; do files=$((files + 1)) bytes=$((bytes + size)); done
    say "${name}_files" "$files"
    say "${name}_bytes" "$bytes"
  }
}
# A living engine holds its folder; lanes hold nothing.
held() {
  if has flock; then ! flock -n "$1" true
  elif [ -n "$python" ]; then
    ! "$python" -I -S -c '
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)' "$1"
  else false
  fi
}
if [ $# -gt 0 ]; then
  for folder do say kept_in "$folder"; done
  kept kept "$@"
  if [ "$CHECK_REMOVE" = 1 ]; then
    for folder do
      for session in "$folder"/*/; do
        session=${session%/}
        [ -d "$session" ] && [ ! -L "$session" ] && ! held "$session" && rm -rf -- "$session"
      done
    done
    kept left "$@"
    rmdir "$@"
  fi
fi
say end 1
