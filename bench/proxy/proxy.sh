#!/bin/bash
# `relent proxy` with the policy of the comparison; the process is replaced, so that whoever measures it has the right one.
#
# usage: proxy.sh LISTEN UP1 UP2             e.g. proxy.sh 127.0.0.1:8001 127.0.0.1:9101 127.0.0.1:9102
#        proxy.sh --print LISTEN UP1 UP2     the policy file alone
# RELENT names the program (default: the one on the path).
set -eu
print=
[ "${1:-}" = --print ] && print=yes && shift
[ $# = 3 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
file=$(sed -e "s/{LISTEN}/$1/" -e "s/{UP1}/$2/" -e "s/{UP2}/$3/" "$(dirname "$0")/relent.toml.in")
if [ "$print" ]; then
    printf '%s\n' "$file"
else
    exec "${RELENT:-relent}" proxy --config /dev/stdin <<<"$file"
fi
