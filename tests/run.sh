#!/bin/sh
# run.sh - installs what is missing, builds, and runs every test that there is.
#
#   tests/run.sh                     everything that must hold, in four builds: see stages below
#   tests/run.sh WORDS...            the plain build alone; the words go to `meson test` (a name, --suite kill, ...)
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh

# What a cache of compilers has from another folder serves here, too.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
slower=4 # than the limits of tests were set for
# Machine code for one kind of GPU, whose text the driver compiles for newer ones: no source asks for which it is
# compiled, and each other kind takes nvcc as long again.
plain_options='-Dtests=enabled -Dcuda=auto -Dgpu_archs=80'

prepare() {
    need_build
    need libcmocka-dev clang-format zstd nginx g++ # a server of files; C++ for the emulated GPU
}

# sanitized SANITIZERS: the program; a stage then builds what its tests need. Nothing of CUDA but what runs on the
# emulated GPU: nvcc takes longer than all the rest, and no sanitizer sees what it makes. Compiled in half the time: a
# sanitizer's reports need no more than lines. What is undefined traps, and the address sanitizer says where: the texts of
# what it was would be 17 of 19 MB of the program's data, which each process reads. At fixed places, since else each of a few
# thousand processes begins with moving 600,000 addresses.
sanitized() {
    ( target=cmd/dtrain
      flags='-g1 -fsanitize-undefined-trap-on-error'
      build "build-${1%%,*}" -Dtests=enabled -Dcuda=disabled "-Db_sanitize=$1" -Db_lundef=false \
          -Dbuildtype=debugoptimized -Doptimization=1 "-Dc_args=$flags" "-Dcpp_args=$flags" -Db_pie=false -Db_staticpic=false )
}

stage() {
    python3 -B tests/stage.py "$report" "$@" --timeout-multiplier $slower
}

# Each test runs once, in the build that sees most: all that is not about numbers, pages or speed under the address and
# undefined sanitizers; numbers as they are shipped, for the best instructions of this processor and for older ones;
# what has threads under the thread sanitizer. Many tests wait for processes, so more of them run
# than there are cores; ten on two cores took longer than six.
# shellcheck disable=SC2086
stages() {
    at_once=$(($(nproc) * 3))
    numbers='--suite kernels --suite graph --suite train --suite data'
    plain="--suite law --suite bench --suite pages --suite real --suite slow --suite ways --suite world --suite seeds --suite shipped $numbers"
    most='--no-suite law --no-suite bench --no-suite pages --no-suite slow --no-suite ways --no-suite world'
    # That it compiles and links, no more: unoptimized, a compiler does not see what some warnings are about.
    say "the program without its optional parts"
    ( target=cmd/dtrain
      build build-least -Doptimization=0 -Dtests=disabled -Dcuda=disabled -Dzstd=disabled -Durls=disabled -Dhttp=disabled -Dimages=disabled -Dtls=disabled )
    build build $plain_options
    sanitized address,undefined
    python3 -B tests/stage.py --left-out "build $plain" "build-address $most"
    stage build $plain
    ! grep -q avx512f /proc/cpuinfo || stage build --setup avx2 $numbers
    stage build-address --num-processes "$at_once" $most
    sanitized thread
    stage build-thread --num-processes "$at_once" --suite threads
}

prepare
if [ $# -gt 0 ]; then
    # shellcheck disable=SC2086
    build build $plain_options
    exec meson test -C build --print-errorlogs --no-rebuild --timeout-multiplier $slower "$@"
fi
report=$(mktemp)
trap 'cat "$report"; rm -f "$report"' EXIT # also of what was done before a stage that failed
stages
