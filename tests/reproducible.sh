#!/bin/sh
# reproducible.sh [MESON OPTION...] - builds the last commit twice, in other folders, at other times and by another user's
# settings, and compares what is made: the program, all that is installed, the Debian package.
#
# By hand: each build takes some minutes, since nothing comes from a cache. 1 where a byte differs; the folder is kept then.
set -eu
export CCACHE_DISABLE=1
unset DEBFULLNAME DEBEMAIL SOURCE_DATE_EPOCH # the package says the first two
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)

# build REPOSITORY CHECKOUT BUILD RESULT [MESON OPTION...]: RESULT has what is installed and the package, RESULT.hashes
# their hashes. The second checkout is one of the first: the repository may get commits meanwhile.
build() {
    from=$1 checkout=$2 build=$3 result=$4
    shift 4
    mkdir -p "$(dirname "$checkout")" "$(dirname "$build")" "$result"
    git -c safe.directory='*' -c advice.detachedHead=false clone -q "$from" "$checkout"
    [ "$from" = "$root" ] || find "$checkout" -path "$checkout/.git" -prune -o -exec touch -d 2020-02-02 {} + # earlier than its commit
    { meson setup "$build" "$checkout" -Dtests=disabled -Dcuda=disabled "$@" && ninja -C "$build" installed &&
        DESTDIR=$result/root meson install -C "$build" --no-rebuild --quiet &&
        mv "$(sh "$checkout/cmd/package/deb.sh" "$build" "$result")" "$result/dtrain.deb"; } > "$result.log" 2>&1 ||
        { tail -n 20 "$result.log"; exit 1; }
    (cd "$result" && find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2) > "$result.hashes"
}

build "$root" "$work/a" "$work/a/build" "$work/one" "$@"
( umask 077
  export TZ=Asia/Tokyo LC_ALL=C LOGNAME=another USER=another HOME="$work" PYTHONHASHSEED=1 SHELL=/bin/sh
  build "$work/a" "$work/another/folder with spaces/b" "$work/elsewhere/deep/er/made" "$work/two" "$@" )
if diff "$work/one.hashes" "$work/two.hashes"; then
    grep -E '/bin/dtrain$|dtrain\.deb$' "$work/one.hashes"
    echo "reproducible.sh: $(wc -l < "$work/one.hashes") files, the same bytes twice"
    rm -rf "$work"
else
    echo "reproducible.sh: these differ: $work"
    exit 1
fi
