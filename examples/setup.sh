# setup.sh - sourced by quickstart.sh and tests/run.sh: installs what dtrain needs (Debian 12 or newer, as root or
# through sudo) and builds it into build/. Names its steps; does nothing that is already done.
#
#   need PACKAGE...    installs the packages that are missing
#   build [DIR [MESON OPTION...]]      everything
#   build_program                      the program alone, and of CUDA nothing where there is no GPU

say() { printf '%s: %s\n' "${0##*/}" "$*"; }

need() {
    missing=
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    say "installing$missing"
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null || { say "not root and no sudo: install these first:$missing"; exit 1; }
        as_root=sudo
    fi
    log=$(mktemp)
    # shellcheck disable=SC2086
    { $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends $missing; } > "$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
    rm -f "$log"
}

need_build() {
    need gcc libc6-dev meson ninja-build pkg-config python3 libjansson-dev libopenblas-dev libdnnl-dev zlib1g-dev libzstd-dev \
        libcurl4-openssl-dev libssl-dev libexpat1-dev libmicrohttpd-dev libjpeg62-turbo-dev libpng-dev
}

build_program() {
    target=cmd/dtrain
    cuda=disabled
    { [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; } || cuda=auto
    say "building the program alone takes about a minute on two cores"
    build build -Dcuda=$cuda
}

build() {
    dir=${1:-build}
    [ $# -eq 0 ] || shift
    say "building into $dir/"
    again=
    if [ -f "$dir/build.ninja" ]; then again=--reconfigure; else rm -rf "$dir/meson-private"; fi # of one that broke off
    log=$(mktemp)
    meson setup $again "$dir" "$@" > "$log" 2>&1 && ninja -C "$dir" ${target:-all} > "$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
    rm -f "$log"
}
