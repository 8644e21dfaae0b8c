#!/bin/sh
# Runs a command whose temporary files are stored in memory, if there is enough of it, and removes them after the
# command. Tests write tens of thousands of small files, and each costs several times the processor time on a disk. If
# TMPDIR is set, they are stored there.
#
# go test reuses the result of a test if its Go sources, its files and its environment are the same. It does not see
# what other processes of a test read: compilers, Python, amkc. So the directory is named by a digest of all files of the
# repository that are not Go, of the tools, and of the variables that these read: if one of them has changed, every test
# that writes temporary files runs again.
room_gb=4
room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print int($4 / 1048576)}')
free=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null)
below=${TMPDIR:-/tmp}
if [ -z "${TMPDIR:-}" ] && [ "${room:-0}" -ge "$room_gb" ] && [ "${free:-0}" -ge "$((2 * room_gb))" ]; then
  below=/dev/shm
fi

inputs() {
  files=$(git ls-files -co --exclude-standard -- ':!*.go') || return 1
  digests=$(echo "$files" | git hash-object --stdin-paths) || return 1
  echo "$files" "$digests"
  for tool in "${CXX:-c++}" cc gcc g++ clang clang++ "${PYTHON:-python3}" "${CUDA_HOME:-.cuda/nvidia/cu13}/bin/nvcc" \
    nvcc make; do
    echo "$tool" "$($tool --version)"
  done
  ls .python .cuda  # pip names folders by versions
  cat /proc/driver/nvidia/version
  env | sort |
    grep -E '^(AMKC_|CCC_|CC=|COMPILER_|CPATH|CPLUS_|CUDA_|CXX=|C_INCLUDE|GCC_|GO|LD_|LIBRARY_PATH|NVCC_|PYTHON)'
}

# The directory of the digest, unless another run has it now; then one of its own, and no result is reused.
TMPDIR=
if all=$(inputs 2>/dev/null); then
  named=$below/amkc-test.$(id -u).$(echo "$all" | sha256sum | cut -c1-16)
  if [ -O "$named" ] && ! kill -0 "$(cat "$named/pid" 2>/dev/null || echo $$)" 2>/dev/null; then
    rm -rf "$named"  # of a run that was killed
  fi
  mkdir -m 700 "$named" 2>/dev/null && TMPDIR=$named && echo $$ >"$named/pid"
fi
[ -n "$TMPDIR" ] || TMPDIR=$(mktemp -d "$below/amkc-test.XXXXXX") || exit
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
"$@"
