#!/bin/sh
# quickstart.sh - from a bare Debian to a trained network: installs what is missing, builds, and trains a small
# convolutional network on generated handwritten digits with 2 parameter servers and 2 workers on this host.
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh
need_build
build_program
say "training: 2 ps + 2 workers"
exec build/cmd/dtrain --local_ps=2 --local_workers=2 examples/digits.json
