#!/bin/sh
# gpu.sh [BUILD] - everything that is to be known of dtrain on this machine's GPU, as one table: the tests of
# kernels, ops and training curves, the same under compute-sanitizer where it is installed, and the speed of
# the kernels. Builds into build-gpu/, or takes what was built in BUILD. Without a GPU: 77, skipped.
set -eu
limit_s=1200 # of each line of the table

have_gpu() {
    [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]
}

have_gpu || { echo "gpu.sh: skipped: no GPU: neither /dev/nvidiactl nor /dev/dxg is there"; exit 77; }
if [ $# -eq 0 ]; then
    cd "$(dirname "$0")/.."
    . examples/setup.sh
    need_build
    need g++ libcmocka-dev
    set -- build-gpu
    build "$1" -Dtests=enabled -Dcuda=enabled
fi
here=$1/tests/cuda
logs=$1/gpu-logs
mkdir -p "$logs"
failures=0

# line NAME COMMAND...: runs it, and prints what has come of it and after how long
line() {
    name=$1
    shift
    began=$(date +%s)
    status=0
    timeout "$limit_s" "$@" > "$logs/$name.log" 2>&1 < /dev/null || status=$?
    case $status in
    0) result=ok ;;
    77) result=skipped ;;
    124) result="more than $limit_s s" ;;
    *) result="failed ($status)" ;;
    esac
    printf '%-28s %-18s %5d s\n' "$name" "$result" "$(($(date +%s) - began))"
    case $status in
    0) ;;
    77) tail -n 1 "$logs/$name.log" ;;
    *)
        failures=$((failures + 1))
        tail -n 20 "$logs/$name.log"
        ;;
    esac
}

"$1/cmd/dtrain" devices
tests='activate gemm image rows update vector precision product own_gemm own_precision fixtures gradients curves'
for test in $tests; do line "$test" "$here/test_gpu_$test"; done

# Races are looked for in the kernels alone: a whole training would take hours.
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck initcheck; do
        for test in activate gemm image rows update vector precision product own_gemm own_precision fixtures; do
            line "$test-$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 "$here/test_gpu_$test"
        done
    done
    for test in gemm image precision product own_gemm own_precision fixtures; do
        line "$test-racecheck" compute-sanitizer --tool racecheck --error-exitcode 9 "$here/test_gpu_$test"
    done
else
    echo "compute-sanitizer is not installed: memory and races were not looked at"
fi

line bench "$here/bench_gpu"
cat "$logs/bench.log"
[ "$failures" -eq 0 ] || { echo "$failures failed; all they said is in $logs/"; exit 1; }
