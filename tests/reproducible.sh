#!/bin/sh
# reproducible.sh [MESON OPTION...] - builds the last commit twice, in other folders, at other times and by another user's
# settings, and compares what is made: the program, all that is installed, the Debian package.
#
# By hand: each build takes some minutes, since nothing comes from a cache. 1 where a byte differs; the folder is kept then.
set -eu
export CCACHE_DISABLE=1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)

# build CHECKOUT BUILD RESULT [MESON OPTION...]: RESULT has what is installed and the package, RESULT.hashes their hashes
build() {
    checkout=$1 build=$2 result=$3
    shift 3
    mkdir -p "$(dirname "$checkout")" "$(dirname "$build")" "$result"
    git -c safe.directory='*' clone -q "$root" "$checkout"
    { meson setup "$build" "$checkout" -Dtests=disabled -Dcuda=disabled "$@" && ninja -C "$build" installed &&
        DESTDIR=$result/root meson install -C "$build" --no-rebuild --quiet &&
        mv "$(sh "$checkout/cmd/package/deb.sh" "$build" "$result")" "$result/dtrain.deb"; } > "$result.log" 2>&1 ||
        { tail -n 20 "$result.log"; exit 1; }
    (cd "$result" && find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2) > "$result.hashes"
}

build "$work/a" "$work/a/build" "$work/one" "$@"
( umask 077
  export TZ=Asia/Tokyo LC_ALL=C LOGNAME=another USER=another HOME="$work" PYTHONHASHSEED=1 SHELL=/bin/sh
  build "$work/another/folder with spaces/b" "$work/elsewhere/deep/er/made" "$work/two" "$@" )
if diff "$work/one.hashes" "$work/two.hashes"; then
    grep -E '/bin/dtrain$|dtrain\.deb$' "$work/one.hashes"
    echo "reproducible.sh: $(wc -l < "$work/one.hashes") files, the same bytes twice"
    rm -rf "$work"
else
    echo "reproducible.sh: these differ: $work"
    exit 1
fi
