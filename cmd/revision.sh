#!/bin/sh
# revision.sh - of a checkout "+gitN.REVISION", N commits in all, with a + behind it where files differ from it; without
# git, or elsewhere, nothing
cd "$(dirname "$0")/.." || exit 0
[ -e .git ] || exit 0
command -v git > /dev/null || exit 0
revision=$(git -c safe.directory='*' describe --always --exclude='*' --abbrev=12 --dirty=+ 2> /dev/null) || exit 0
count=$(git -c safe.directory='*' rev-list --count HEAD 2> /dev/null) || exit 0
echo "+git$count.$revision"
