#!/bin/sh
# needed.sh BINARY WITH - the program needs no library of CUDA, nor C++'s, starts without a driver, and
# holds code for GPUs if it was built WITH (yes or no).
set -eu
command -v readelf > /dev/null || exit 77 # meson: skipped
needed=$(readelf -d "$1" | grep NEEDED)
if echo "$needed" | grep -E 'cuda|cublas|cudnn|nvidia|nvrtc|stdc\+\+'; then
    echo "$1 must start where these are not" >&2
    exit 1
fi
echo "$needed" | grep -q 'libc\.so' # it is a list of libraries that was looked at
has=no
if readelf -SW "$1" | grep -q '\.nv_fatbin'; then has=yes; fi
test "$has" = "$2"
"$1" version > /dev/null
