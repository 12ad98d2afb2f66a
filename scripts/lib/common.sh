# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts: messages, timing, the repository's root. Sourced, never run.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' dim=$'\e[2m' plain=$'\e[0m'
else
  bold='' green='' red='' dim='' plain=''
fi
export bold green red dim plain

say() { printf '%s\n' "$*"; }
heading() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

# fail TEXT: one line on stderr, exit code 1.
fail() {
  printf '%serror: %s%s\n' "$red" "$*" "$plain" >&2
  exit 1
}

# configure DIRECTORY CMAKE-ARGUMENTS..: configures unless this was done with the same arguments, and uses
# ccache where it is installed.
configure() {
  local directory=$1 stamp="$1/.configured-with"
  shift
  local arguments=("$@")
  if command -v ccache >/dev/null; then
    arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  fi
  if [[ -f $directory/build.ninja && -f $stamp && $(<"$stamp") == "${arguments[*]}" ]]; then
    return 0
  fi
  cmake -S "$repository" -B "$directory" -G Ninja "${arguments[@]}"
  printf '%s\n' "${arguments[*]}" >"$stamp"
}

# elapsed SECONDS: 75 -> 1 min 15 s.
elapsed() {
  if (($1 >= 60)); then printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); else printf '%d s' "$1"; fi
}
