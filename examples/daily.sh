#!/bin/sh
# daily.sh - a model that is trained on the clicks of each day, once, in one folder: values, slots and the global step go
# on from day to day. Each day is evaluated before it is trained on (progressive validation): its clicks are new to the
# model then, so this is the figure that counts.
#
#   sh examples/daily.sh                              installs and builds what is missing first
#   DTRAIN=/PATH/TO/dtrain sh examples/daily.sh       with that program; FLAGS="--local_ps=2 --local_workers=2" trains by a cluster
set -eu
cd "$(dirname "$0")/.."
if [ -z "${DTRAIN:-}" ]; then
    . examples/setup.sh
    need_build
    build_program
    DTRAIN=build/cmd/dtrain
fi
spec=examples/clicks_daily.json
rows=6000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

make_day() { # NUMBER: some users click more often than others, and on some items more often than on others
    awk -v day="$1" -v rows="$rows" 'BEGIN {
        srand(day)
        print "user,item,hour,click"
        for (i = 0; i < rows; i++) {
            user = int(rand() * 300); item = int(rand() * 100)
            click = rand() < 1 / (1 + exp(-0.7 * (user % 7 - 3) - 0.7 * (item % 5 - 2)))
            print "u" user ",i" item "," int(24 * i / rows) "," click
        }
    }'
}

day=1
while [ "$day" -le 3 ]; do
    make_day "$day" > "$work/day-$day.csv"
    if [ "$day" -gt 1 ]; then
        printf 'day %s, before it is trained on: ' "$day"
        "$DTRAIN" eval --checkpoint="$work/model" --data_dir="$work" \
            --set "data.eval={\"format\": \"csv\", \"file\": \"day-$day.csv\", \"label\": \"click\"}" $spec
    fi
    "$DTRAIN" -o "$work/model" --data_dir="$work" --set data.train.file="day-$day.csv" --result="$work/result.json" \
        ${FLAGS:-} $spec > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    printf 'day %s: %s steps\n' "$day" "$(sed -n 's/^ *"trained": \([0-9]*\),*$/\1/p' "$work/result.json")"
    day=$((day + 1))
done
"$DTRAIN" checkpoint ls "$work/model"
