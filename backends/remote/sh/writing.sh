# shellcheck shell=dash
# A file is replaced: complete, or not at all. The content comes on the lane's own stdin: `left` is
# what is still to come, then a newline, which also tells that no byte is missing.
replace() {
  p=$1 n=$3 left=$3 flags=$4 version=$5 digest=$6 t= e= spool=
  settle "$2"
  s=$?
  umask "$mask"
  set +C
  [ -z "$t" ] || rm -f -- "$t"
  [ -z "$spool" ] || rmdir "$spool" "${spool%/*}"
  # What was not taken cannot be told from the next request: this lane is at its end.
  if [ "$left" = lost ]; then answer $W D $s; exit; fi
  if [ "$left" != 0 ]; then $take$left <&3 >/dev/null; IFS= read -r x <&3; fi
  return $s
}
settle() {
  case $p in */) [ ! -d "$p" ] || why "$p"; return 21;; esac
  case ${p##*/} in . | ..) why "$p"; return;; esac
  follow || return
  d=${p%/*}
  if [ -e "$p" ]; then
    [ -f "$p" ] || { why "$p"; return; }
    [ -w "$p" ] || { denied; return 23; }
    x=$(stat -c '%d:%i %u:%g %a %h %s' -- "$p" 2>&1) || { blame "$x" "$p"; return; }
    set -- "$1" $x
    id=$2 owner=$3 mode=000$4 links=$5 size=$6 e=1
    [ -z "$version" ] || [ "$version" = "$id" ] || return 27
  else
    [ -z "$version" ] || return 27
    if ! [ -d "$d/" ]; then
      case $flags in *p*) ;; *) why "$p"; return;; esac
      x=$(mkdir -p -- "$d" 2>&1) || { blame "$x" "$p"; return; }
    fi
  fi
  reason=
  if [ -n "$e" ] && [ "$links" -gt 1 ]; then reason=hard_links; fi
  fresh "$d/$1" || aside "$1" ||
    { x=$( { set -C; true >"$d/$1"; } 2>&1 ) && rm -f -- "$d/$1"; blame "$x" "$p"; return; }
  receive || return
  [ -n "$e" ] || { commit; return; }
  [ -n "$reason" ] || attributes
  same || return 27
  if [ -z "$reason" ]; then commit; else in_place; fi
}
# By hand: busybox's `readlink -f` looks for the target of a broken link in the wrong folder.
follow() {
  c=0
  while [ -L "$p" ]; do
    planted || { printf 'Permission denied'; return 23; }
    c=$((c + 1))
    [ $c -le 40 ] || { why "$p"; return; }
    x=$(readlink -n -- "$p" && echo .)
    x=${x%.}
    case $x in
      '') ;; # it is none any more: once again
      /*) p=$x;;
      *) p=${p%/*}/$x;;
    esac
    case $p in */) why "$p"; return 21;; esac
  done
}
planted() {
  x=${p%/*}/
  [ -k "$x" ] || return 0
  x=$(stat -L -c '%a %u' -- "$x") && y=$(stat -c %u -- "$p") || return 1
  case ${x% *} in *[2367]) ;; *) return 0;; esac
  [ "$y" = "${me%:*}" ] || [ "$y" = "${x#* }" ]
}
denied() { x=$( { true >>"$p"; } 2>&1 ); printf %s "${x:-Permission denied}"; }
fresh() {
  if [ -n "$e" ] && [ -z "$reason" ]; then
    # As private as the file that it replaces, from the first byte on.
    b=${mode#"${mode%??}"} c=${mode#"${mode%?}"}
    umask "01$((7 - ${b%?}))$((7 - c))"
  elif [ -n "$e" ]; then umask 077
  fi
  set -C
  true >"$1" && t=$1
  x=$?
  set +C
  umask "$mask"
  return $x
}
aside() {
  [ -n "$e" ] && [ ! -w "$d/" ] && reason=folder_not_writable &&
    spool=$(kept_folder "$1" 1) && fresh "$spool/$1"
}
receive() {
  if [ "$n" != 0 ]; then
    x=$($take$n 2>&1 >"$t" <&3) || { left=lost; blame "$x" "$p"; return; }
  fi
  IFS= read -r x <&3 && [ -z "$x" ] || { left=lost; printf 'the content is not whole'; return 26; }
  left=0
  case $flags in *d*) flush "$t";; esac
}
attributes() {
  if [ "$owner" != "$me" ] || [ -g "$d/" ]; then
    chown "$owner" "$t" || { reason=owner; return; }
  fi
  # It was made with the mode of a file that its owner may read and write, and nobody executes.
  case $mode,$owner in
    0006[0246][0246],"$me") ;;
    *) chmod "${mode#00}" "$t" || reason=attributes;;
  esac
}
same() {
  [ -n "$version" ] || return 0
  set -- $(sha256sum <"$p")
  [ "$1" = "$digest" ] || return 1
  [ "$(stat -c %d:%i -- "$p")" = "$version" ]
}
commit() {
  [ ! -d "$p" ] || { why "$p"; return; }
  x=$(mv -f $mv_flag -- "$t" "$p" 2>&1) && {
    t=
    case $flags in *d*) flush "$d/";; esac
    printf '%s 1 -' "${e:-0}"
    return 0
  }
  [ -n "$e" ] || { blame "$x" "$p"; return; }
  case $x in
    *usy* | *ross-device* | *'nvalid cross'*) reason=mount_point;;
    *'ermission denied'* | *'not permitted'* | *'ead-only file'*) reason=folder_not_writable;;
    *) blame "$x" "$p"; return;;
  esac
  in_place
}
in_place() {
  [ ! -L "$p" ] && [ -f "$p" ] || return 27
  if [ "$n" -gt "$size" ]; then
    # Room first: the old content must be whole if there is none.
    x=$( { $take$((n - size)) </dev/zero >>"$p"; } 2>&1 ) ||
      { shorten "$size"; blame "$x" "$p"; return; }
  fi
  x=$(dd bs=65536 conv=notrunc if="$t" of="$p" 2>&1) || { blame "$x" "$p"; return; }
  [ "$n" -ge "$size" ] || shorten "$n"
  case $flags in *d*) flush "$p";; esac
  printf '%s 0 %s' 1 "$reason"
}
shorten() { dd if=/dev/null of="$p" bs=1 seek="$1" count=0; }
flush() { sync "$1" || sync; }
