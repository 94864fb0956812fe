#!/bin/sh
# Every C file that git knows, or without git every C file in our folders, stands as clang-format would put it.
# format.sh ROOT
# Versions differ in what they make of some lines: it is that of Debian 12.
version=14
set -eu
cd "$1"
formatter=$(command -v "clang-format-$version" || command -v clang-format) || exit 77 # meson: skipped
"$formatter" --version | grep -q "version $version\." || exit 77
if [ -e .git ] && command -v git > /dev/null; then
    git -c safe.directory="$PWD" ls-files '*.c' '*.h'
else
    find cmd core kernels net tests -name '*.[ch]'
fi | xargs "$formatter" --dry-run --Werror
