#!/bin/sh
# shared_variable.sh - a number that several processes share: one ps without any training keeps it, two shell loops
# add to it by turns, and a third process prints it whenever it has changed. Ends with the total, in which every number
# is once; binary fractions leave a rounding error in the last digits.
#
#   sh examples/shared_variable.sh                              installs and builds what is missing first
#   DTRAIN=/PATH/TO/dtrain sh examples/shared_variable.sh       with that program
set -eu
cd "$(dirname "$0")/.."
if [ -z "${DTRAIN:-}" ]; then
    . examples/setup.sh
    need_build
    build_program
    DTRAIN=build/cmd/dtrain
fi
times=50
ports_tried_max=20
work=$(mktemp -d)
ps=
watcher=
cleanup() {
    for process in $ps $watcher; do kill "$process" 2> /dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A ps alone. It needs to know what cluster it is in, but nobody has to come. A port that is taken leads to the next.
port=$((20000 + $$ % 10000))
tried=0
: > "$work/ps"
until [ -n "$ps" ]; do
    tried=$((tried + 1))
    address=127.0.0.1:$port
    "$DTRAIN" --job_name=ps --task_index=0 --ps_hosts="$address" --worker_hosts=localhost:1 --log_level=debug \
        2> "$work/ps" &
    ps=$!
    until grep -q "listens at" "$work/ps"; do
        kill -0 "$ps" 2> /dev/null || { ps=; break; }
        sleep 0.05
    done
    [ -n "$ps" ] || [ "$tried" -lt "$ports_tried_max" ] || { cat "$work/ps"; exit 1; }
    port=$((port + 1))
done
export PS_HOSTS="$address"

echo "ps at $address, total set to $("$DTRAIN" var set total 0)"
: > "$work/seen"
"$DTRAIN" var watch total --every=0.1 2> "$work/watch" | tee "$work/seen" &
watcher=$!
until [ -s "$work/seen" ]; do # it is there before there is something to see
    kill -0 "$watcher" 2> /dev/null || { cat "$work/watch"; exit 1; }
    sleep 0.05
done

add() { # NUMBER, as often as was said
    i=0
    while [ "$i" -lt "$times" ]; do
        "$DTRAIN" var add total "$1" > /dev/null
        i=$((i + 1))
    done
}
add 0.1 & first=$!
add 0.2 & second=$!
wait "$first"
wait "$second"

total=$("$DTRAIN" var get total)
kill -TERM "$ps"
wait "$ps" || code=$?
[ "${code:-0}" -eq 143 ] || { echo "the ps ended with code ${code:-0}"; exit 1; }
ps=
wait "$watcher" || true # it ends with the ps, and with its code
watcher=
echo "total $total after $times times 0.1 and $times times 0.2"
awk -v total="$total" 'BEGIN { off = total - 15; exit !(off < 1e-9 && off > -1e-9) }' || { echo "expected 15"; exit 1; }
