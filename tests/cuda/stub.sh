#!/bin/sh
# stub.sh BINARY STUB - the library that toolkits have in the place of the driver's, for linking, is no driver that is too
# old; where it is STUB.
set -eu
[ -e "$2" ] || exit 77 # meson: skipped
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$2" "$work/libcuda.so.1"
said=$(LD_LIBRARY_PATH=$work "$1" devices)
echo "$said"
echo "$said" | grep -q '^no GPU: libcuda.so.1 is no driver, but a stub'
if echo "$said" | grep -q 'too old'; then exit 1; fi
