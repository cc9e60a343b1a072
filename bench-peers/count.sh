#!/bin/sh
# Instructions per call of every case: (instructions of 3000 calls - of 1000) / 2000, by valgrind's callgrind.
# `count.sh breaker` counts those alone whose name has that. Exact for one binary, whatever else the machine does. valgrind
# runs clock_gettime as a system call, which it does not count: cases that read the clock are under-counted by that.
set -eu
cd "$(dirname "$0")"
cargo build --release --quiet
peers="${CARGO_TARGET_DIR:-target}/release/relent-bench-peers"
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$peers" --case "$1" --iterations "$2" 2>&1 |
    sed -n 's/.*Collected : *//p'
}
echo "| case | instructions per call |"
echo "|---|--:|"
"$peers" --list | grep -e "${1:-}" | while read -r name; do
  few=$(instructions "$name" 1000)
  many=$(instructions "$name" 3000)
  echo "| $name | $(((many - few) / 2000)) |"
done
"$peers" --allocations
