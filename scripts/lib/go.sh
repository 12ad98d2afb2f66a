# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Finds Go, or fetches it. Sourced after common.sh, never run.
#
# Debian 12's Go (1.19) is too old to compile the controller and too old to fetch a newer one by itself. The Go module
# proxy serves each release as a zip file, which is checked here against a pinned sum, so curl, python3 and the address of the
# proxy are enough.

go_version=1.26.8
go_minimum_minor=26
go_sum_amd64=30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7

# What is built once and kept lies outside of the repository.
volferry_cache=${VOLFERRY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/volferry}

# go_is_new PROGRAM: whether it is Go 1.26 or later.
go_is_new() {
  local text minor
  # Outside of any module, so that a go.mod does not make an old Go fetch another one.
  text=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  minor=${text#go1.}
  minor=${minor%%[!0-9]*}
  [[ -n $minor ]] && ((minor >= go_minimum_minor))
}

# find_go: puts a Go that can compile the controller first in PATH, if there is one.
find_go() {
  local directory
  for directory in "$(dirname "$(command -v go || echo /nonexistent/go)")" /usr/local/go/bin \
    "$volferry_cache/go/$go_version/bin"; do
    if [[ -x $directory/go ]] && go_is_new "$directory/go"; then
      PATH=$directory:$PATH
      export PATH
      return 0
    fi
  done
  return 1
}

# use_go: the same, and fetches one if there is none. Messages go to stderr.
use_go() {
  find_go || { fetch_go && find_go; }
}

# go_proxy: prints where Go's modules come from: GOPROXY, or the default of a Go that is there, be it too old to compile.
go_proxy() {
  if command -v go >/dev/null; then
    (cd / && GOTOOLCHAIN=local go env GOPROXY)
  else
    printf '%s\n' "${GOPROXY:-}"
  fi
}

# fetch_go: unpacks the pinned release into the cache folder.
fetch_go() {
  local proxy machine target scratch archive
  proxy=$(go_proxy)
  proxy=${proxy%%[,|]*}
  machine=$(uname -m)
  if [[ $machine != x86_64 ]]; then
    say "Go 1.$go_minimum_minor or later is needed; install it by hand, as its sum is pinned for x86_64 only" >&2
    return 1
  fi
  if [[ -z $proxy ]] || ! command -v curl >/dev/null || ! command -v python3 >/dev/null; then
    say "curl, python3 and GOPROXY, or some Go that has a default for it, are needed to fetch Go: run scripts/install-deps go" >&2
    return 1
  fi
  target=$volferry_cache/go/$go_version
  say "fetching Go $go_version from the module proxy into $target" >&2
  mkdir -p "$volferry_cache/go"
  scratch=$(mktemp -d "$volferry_cache/go/.fetch.XXXXXX")
  archive=$scratch/go.zip
  if ! curl -fsSL --retry 3 -o "$archive" \
    "$proxy/golang.org/toolchain/@v/v0.0.1-go$go_version.linux-amd64.zip" ||
    ! sha256sum --quiet -c - <<<"$go_sum_amd64  $archive" >&2; then
    rm -rf "$scratch"
    say "Go $go_version could not be fetched; install Go 1.$go_minimum_minor or later by hand" >&2
    return 1
  fi
  python3 -m zipfile -e "$archive" "$scratch/unpacked"
  # A module zip carries no modes.
  chmod +x "$scratch"/unpacked/golang.org/toolchain@*/bin/* \
    "$scratch"/unpacked/golang.org/toolchain@*/pkg/tool/linux_amd64/*
  mv -T "$scratch"/unpacked/golang.org/toolchain@* "$target" 2>/dev/null || [[ -x $target/bin/go ]]
  rm -rf "$scratch"
}
