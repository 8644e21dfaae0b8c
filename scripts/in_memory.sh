#!/bin/sh
# Runs a command whose temporary files lie in memory, where there is plenty of it, and go with the command. Tests write
# tens of thousands of small files, and to make one costs several times the processor time on a disk. Who has set TMPDIR
# keeps it.
room_gb=4
room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print int($4 / 1048576)}')
free=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null)
if [ -n "${TMPDIR:-}" ] || [ "${room:-0}" -lt "$room_gb" ] || [ "${free:-0}" -lt "$((2 * room_gb))" ]; then
  exec "$@"
fi
TMPDIR=$(mktemp -d /dev/shm/amkc-test.XXXXXX) || exec "$@"
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
"$@"
