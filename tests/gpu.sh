#!/bin/sh
# gpu.sh [BUILD [PART...]] - everything that is to be known of dtrain on this machine's GPU: the tests of kernels, ops
# and training curves, the same under compute-sanitizer where it is installed, and then one table of all figures, each
# beside its goal: the kernels against cuBLAS, cuDNN and a copy, whole steps beside PyTorch where python3 (or
# $TORCH_PYTHON) has it, less precision against float32, a cluster on one GPU, the same bits twice.
# Builds into build-gpu/, or takes what was built in BUILD. Figures and all that was said are in BUILD/gpu-logs/.
# PARTS: tests, memcheck, initcheck, racecheck, synccheck, bench, bits, precision, steps, cluster, table; what others
# have left in BUILD/gpu-logs/ stays, and the table has it too. Ended by a signal it still prints the table so far.
# Nothing else should run on the GPU. The exit code says whether all went well, not whether goals were met.
# Without a GPU: 77, skipped.
set -eu
test_limit_s=1200    # of each test
figures_limit_s=5400 # of each line of figures

have_gpu() {
    [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]
}

python=${TORCH_PYTHON:-python3}
have_gpu || { echo "gpu.sh: skipped: no GPU: neither /dev/nvidiactl nor /dev/dxg is there"; exit 77; }
tests_folder=$(cd "$(dirname "$0")" && pwd)
if [ $# -eq 0 ]; then
    cd "$tests_folder/.."
    . examples/setup.sh
    # A machine without a network may have all of it from elsewhere; else meson says what is missing.
    (need_build && need g++ libcmocka-dev) || say 'goes on with what is here'
    set -- build-gpu
    build "$1" -Dtests=enabled -Dcuda=enabled
fi
build=$1
shift
all_parts='tests memcheck initcheck racecheck synccheck bench bits precision steps cluster table'
parts=${*:-$all_parts}
for part in $parts; do
    case " $all_parts " in *" $part "*) ;; *) echo "gpu.sh: no part $part; they are $all_parts"; exit 2 ;; esac
done
# meson finds nvcc there too
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:/usr/local/cuda/bin:/opt/cuda/bin
export CUDA_DEVICE_ORDER="${CUDA_DEVICE_ORDER:-PCI_BUS_ID}" # the driver counts GPUs so
# cuBLAS and cuDNN are looked for among this Python's packages too
export VIRTUAL_ENV="${VIRTUAL_ENV:-$("$python" -c 'import sys; print(sys.prefix)' || true)}"
here=$build/tests/cuda
logs=$build/gpu-logs
failures=0
passes=0
child=
[ $# -gt 0 ] || rm -rf "$logs" # figures of another run would stand in the table
mkdir -p "$logs"

wanted() { case " $parts " in *" $1 "*) ;; *) return 1 ;; esac; }

table() {
    echo
    python3 -B "$tests_folder/bench/gpu_table.py" "$logs" > "$logs/table.txt" || failures=$((failures + 1))
    cat "$logs/table.txt"
}

# timeout(1) is in a group of its own, which no Ctrl-C and nobody who ends this script reaches.
stop() {
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        kill -TERM "$child" 2> /dev/null || true
        wait "$child" || true
    fi
    table
    exit 143
}
trap stop INT TERM HUP

# line LIMIT_S NAME COMMAND...: runs it, and prints what has come of it and after how long
line() {
    limit_s=$1
    name=$2
    shift 2
    began=$(date +%s)
    status=0
    timeout -k 60 "$limit_s" "$@" > "$logs/$name.log" 2>&1 < /dev/null &
    child=$!
    wait "$child" || status=$?
    child=
    case $status in
    0) result=ok ;;
    77) result=skipped ;;
    124 | 137) result="more than $limit_s s" ;;
    *) result="failed ($status)" ;;
    esac
    printf '%-28s %-18s %5d s\n' "$name" "$result" "$(($(date +%s) - began))"
    case $status in
    0) passes=$((passes + 1)) ;;
    77) tail -n 1 "$logs/$name.log" ;;
    *)
        failures=$((failures + 1))
        tail -n 20 "$logs/$name.log"
        ;;
    esac
}

# sanitize_all TOOL: all but the curves. Kernels of NVIDIA's libraries are not ours to mend, and tools give false
# alarms of some. dtrain looks at what every call of CUDA returns itself, and asks whether work is done by a call that
# says no by an error. Memory of the GPU's own, streams and recordings are in the sessions alone.
sanitize_all() {
    for test in $tests sessions; do
        program=$here/test_gpu_$test
        [ "$test" != sessions ] || program=$sessions
        [ "$test" = curves ] || line "$test_limit_s" "$test-$1" env GPU_BARE=1 compute-sanitizer --tool "$1" \
            --report-api-errors no --error-exitcode 9 "$program"
    done
}

"$build/cmd/dtrain" devices
tests=$(find "$here" -maxdepth 1 -type f -name 'test_gpu_*' | sed 's,.*/test_gpu_,,' | sort)
sessions=$build/tests/device/test_gpu_sessions
bare_tests='gemm image precision' # our own products and convolutions, where libraries would take their place
if wanted tests; then
    for test in $tests; do line "$test_limit_s" "$test" "$here/test_gpu_$test"; done
    line "$test_limit_s" sessions "$sessions"
    [ "$passes" -gt 0 ] || { echo "nothing ran on the GPU, though its driver is there"; exit 1; }
    for test in $bare_tests; do
        line "$test_limit_s" "$test-bare" env GPU_BARE=1 "$here/test_gpu_$test"
    done
fi

# On some virtual machines it refuses GPUs.
can_sanitize() {
    if ! command -v compute-sanitizer > /dev/null; then
        echo "compute-sanitizer was not found: memory and races were not looked at"
        return 1
    fi
    if compute-sanitizer "$build/cmd/dtrain" devices < /dev/null 2>&1 | grep 'Device not supported'; then
        echo "compute-sanitizer does not work here: memory and races were not looked at"
        return 1
    fi
}

case " $parts " in
*check\ *)
    if can_sanitize; then
        for tool in memcheck initcheck racecheck synccheck; do
            ! wanted "$tool" || sanitize_all "$tool"
        done
    fi
    ;;
esac

! wanted bench || line "$figures_limit_s" bench "$here/bench_gpu" --json "$logs/bench.json"
for part in bits precision steps cluster; do
    ! wanted "$part" || line "$figures_limit_s" "gpu-$part" python3 -B "$tests_folder/bench/gpu.py" \
        --dtrain "$build/cmd/dtrain" --parts "$part" --torch-python "$python" --json "$logs/gpu-$part.json"
done

! wanted table || table
[ "$failures" -eq 0 ] || { echo "$failures failed; all they said is in $logs/"; exit 1; }
