# shellcheck shell=dash
# Requests, one line each, until the near end is gone. HELLO becomes a word. The lane holds no
# folder, and its own locale is not the commands'.
locale=${LC_ALL+.$LC_ALL}
LC_ALL=C
export LC_ALL
mask=$(umask)
unset CDPATH
cd /
exec 2>/dev/null
# Not to die while there is something to clean up; programs get the default again.
trap : PIPE
variables() { :; }
T= ran= keep= y= marks=
answer HELLO H $$
while IFS= read -r request <&3; do eval "$request"; done
[ -z "$ran" ] || [ -n "$keep" ] || sweep "$marks"
