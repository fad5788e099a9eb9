#!/bin/sh
# Installs posse from a release; --help says how.
set -eu

usage() {
  cat <<'END'
Installs posse from a release: from the folder in which this script lies, or from another folder or address.

  sh install.sh [--to PREFIX] [FOLDER|URL]

PREFIX is ~/.local unless you name another. Nothing outside of it is changed. `posse uninstall --print` says how to
remove posse again.
END
}

fail() {
  echo "error: $1" >&2
  exit 1
}

prefix=
from=
while [ $# -gt 0 ]; do
  case $1 in
    --to)
      [ $# -ge 2 ] || fail "--to wants a folder"
      prefix=$2
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) fail "there is no option $1; sh install.sh --help says which there are" ;;
    *)
      [ -z "$from" ] || fail "one folder or address at a time, not both $from and $1"
      from=$1
      shift
      ;;
  esac
done
if [ -z "$prefix" ]; then
  [ -n "${HOME:-}" ] || fail "HOME is not set: name a folder with --to"
  prefix=$HOME/.local
fi
[ -n "$from" ] || from=$(dirname "$0")

[ "$(uname -s)" = Linux ] || fail "this release is for Linux, and this is $(uname -s): build posse from source"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Brings a file of the release into the scratch folder.
bring() {
  case $from in
    http://* | https://* | file://*)
      if command -v curl >/dev/null; then
        curl -fsSL -o "$scratch/$1" "$from/$1"
      elif command -v wget >/dev/null; then
        wget -q -O "$scratch/$1" "$from/$1"
      else
        fail "curl or wget is needed to download posse"
      fi
      ;;
    *) cp "$from/$1" "$scratch/$1" 2>/dev/null ;;
  esac || fail "$from has no $1 that can be read"
}

bring SHA256SUMS
name=$(sed -n "s/^[0-9a-f]* [ *]\(posse-.*-$(uname -m)-linux\.tar\.gz\)$/\1/p" "$scratch/SHA256SUMS" | head -n 1)
[ -n "$name" ] || fail "$from has no posse for $(uname -m)"
bring "$name"
(cd "$scratch" && grep -F " $name" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
  fail "$name is not what SHA256SUMS says: it was changed, or the download broke off. Nothing was installed"
tar -xzf "$scratch/$name" -C "$scratch"
unpacked=$scratch/${name%.tar.gz}
version=$("$unpacked/bin/posse" --version) ||
  fail "posse does not run here. It needs glibc 2.31 or later; this machine has $(getconf GNU_LIBC_VERSION 2>/dev/null || echo another C library). Nothing was installed"

mkdir -p "$prefix/bin" "$prefix/share"
cp -R "$unpacked/share/." "$prefix/share/"
# A posse that runs keeps the file that it began with.
cp "$unpacked/bin/posse" "$prefix/bin/posse.new"
mv -f "$prefix/bin/posse.new" "$prefix/bin/posse"

echo "$version is installed: $prefix/bin/posse"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) echo "$prefix/bin is not in your PATH. Add this line to your shell's start file:
  export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
case ${SHELL:-} in
  */zsh) echo "Completions for zsh: add this line to ~/.zshrc, before compinit:
  fpath=(\"$prefix/share/zsh/site-functions\" \$fpath)" ;;
esac
echo "Next: posse doctor"
