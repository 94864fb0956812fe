#!/bin/sh
# in_graph.sh - who reads the data changes no bit: two workers train digits.json, first each on its own share, then on
# what the chief reads for both; the checkpoints of both runs are compared.
#
#   sh examples/in_graph.sh                              installs and builds what is missing first
#   DTRAIN=/PATH/TO/dtrain sh examples/in_graph.sh       with that program
set -eu
cd "$(dirname "$0")/.."
if [ -z "${DTRAIN:-}" ]; then
    . examples/setup.sh
    need_build
    build_program
    DTRAIN=build/cmd/dtrain
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for replication in between_graph in_graph; do
    "$DTRAIN" --local_workers=2 --set train.mode=sync --set train.last_step=100 \
        --set train.replication="$replication" --set train.checkpoint_dir="$work/$replication" examples/digits.json
done
# A ledger says which life of a worker pushed what: no two runs have the same.
"$DTRAIN" checkpoint diff "$work/between_graph" "$work/in_graph" > "$work/differences" || true
if grep -v -e "^dtrain/ledger/" -e "^equal:" "$work/differences"; then
    echo "the runs differ"
    exit 1
fi
echo "all variables and slots are the same"
