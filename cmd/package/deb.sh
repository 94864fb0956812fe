#!/bin/sh
# deb.sh - makes a Debian package of a build: dtrain_VERSION_ARCHITECTURE.deb
#
# Reproducible: the same sources, compiler and libraries give the same bytes. File times are SOURCE_DATE_EPOCH, or that
# of the last commit, or, without either, that of the binary, which each build changes. DEBFULLNAME and DEBEMAIL, if set,
# are the maintainer.
#
#   sh cmd/package/deb.sh [BUILD [FOLDER]]     default: build/, into the current folder
#
# dpkg-shlibdeps (of dpkg-dev) finds which packages the binary needs, and their versions.
set -eu
umask 022
export LC_ALL=C
maintainer="${DEBFULLNAME:-dtrain} <${DEBEMAIL:-dtrain@example.org}>"
build=$(cd "${1:-build}" && pwd)
into=$(cd "${2:-.}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# The quick start builds only the program.
[ -f "$build/cmd/package/dtrain.1" ] && [ -f "$build/cmd/package/dtrain.spdx.json" ] || ninja -C "$build" installed > "$work/log" || { tail -n 40 "$work/log"; exit 1; }
DESTDIR=$work/stage meson install -C "$build" --no-rebuild --quiet

# The package is for /usr, whatever the prefix was: no installed file contains its own path.
binary=$(find "$work/stage" -path '*/bin/dtrain')
root=$work/root
mkdir -p "$root/DEBIAN" "$work/debian"
cp -a "${binary%/bin/dtrain}" "$root/usr"
doc=$root/usr/share/doc/dtrain
cat > "$doc/copyright" << 'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: dtrain

Files: *
Copyright: 2026 the authors of dtrain
License: Apache-2.0
 On Debian systems the full text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.
END
rm "$doc/LICENSE"
[ ! -d "$root/usr/share/zsh/site-functions" ] || mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
gzip -9n "$root"/usr/share/man/man?/*
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/dtrain"
find "$root/usr" -type d -exec chmod 755 {} +
find "$root/usr" -type f ! -path '*/bin/*' -exec chmod 644 {} +
find "$root/usr/share/dtrain" \( -name '*.sh' -o -name '*.sbatch' \) -exec chmod 755 {} +

# Without dpkg-dev: the packages that own the libraries on this host, without versions.
owner() {
    for path in "$1" "$(readlink -f "$1")"; do
        dpkg-query -S "*${path#/usr}" 2> /dev/null || true
    done | sed -n '1{s/[:,].*//;s/^libopenblas0-.*/libopenblas0/;p}'
}
owners() {
    ldd "$1" > "$work/libraries"
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(lib.*\)\]/\1/p' | while read -r library; do
        owner "$(sed -n "s|.*$library => \([^ ]*\) .*|\1|p" "$work/libraries")"
    done | sort -u | paste -sd, | sed 's/,/, /g'
}
if command -v dpkg-shlibdeps > /dev/null; then
    printf 'Source: dtrain\n\nPackage: dtrain\nArchitecture: any\n' > "$work/debian/control"
    found=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/dtrain" 2> "$work/log") || { cat "$work/log"; exit 1; }
    depends=${found#shlibs:Depends=}
else
    depends=$(owners "$root/usr/bin/dtrain")
fi
version=$("$root/usr/bin/dtrain" --version | sed -n '1s/^dtrain \([^ ]*\).*/\1/p')
architecture=$(dpkg --print-architecture)
source=$(dirname "$0")
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' -C "$source" log -1 --format=%ct 2> /dev/null || stat -c %Y "$build/cmd/dtrain")}"
printf 'dtrain (%s) unstable; urgency=medium\n\n  * Built from its sources.\n\n -- %s  %s\n' "$version" "$maintainer" \
    "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n > "$doc/changelog.gz"
cat > "$root/DEBIAN/control" << END
Package: dtrain
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(find "$root/usr" \( -type f -printf '%s\n' \) -o -printf '1024\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
Depends: $depends
Recommends: libcurl4t64 | libcurl4, libmicrohttpd12t64 | libmicrohttpd12
Section: science
Priority: optional
Description: trains neural networks over parameter servers
 One binary, started on every machine: ps tasks hold the variables, worker tasks
 compute gradients. A JSON file says what to train; there is no code to write.
END
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} + # the tool that packs brings only later times there
package=$into/dtrain_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" > "$work/log" || { cat "$work/log"; exit 1; }
echo "$package"
