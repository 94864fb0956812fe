#!/bin/sh
# words.sh NVCC ROOT - kernels of products and convolutions do not move numbers byte by byte, which nvcc makes of a
# memcpy() where it does not know the alignment. PTX shows it, before any machine code is made.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -O3 -std=c++17 -I "$2" -arch=compute_90 -ptx "$2/kernels/cuda/product/conv.cu" -o "$work/conv.ptx"
grep -oE '(ld|st)\.global[.a-z0-9]*' "$work/conv.ptx" | sort | uniq -c > "$work/moves"
cat "$work/moves"
grep -q '32$' "$work/moves" # numbers one by one: else this looks for the wrong words
if grep -q '\.[usb]8$' "$work/moves"; then exit 1; fi
