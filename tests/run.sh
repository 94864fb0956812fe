#!/bin/sh
# run.sh - installs what is missing, builds, and runs every test. Arguments go to `meson test`.
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh
need_build
need libcmocka-dev clang-format nginx g++ # a server of files; C++ for the emulated GPU
build build -Dtests=enabled -Dcuda=auto
exec meson test -C build --print-errorlogs --no-rebuild --timeout-multiplier 4 "$@"
