#!/bin/sh
# gpu.sh [BUILD] - everything that is to be known of dtrain on this machine's GPU: the tests of kernels, ops and
# training curves, the same under compute-sanitizer where it is installed, and then one table of all figures, each
# beside its goal: the kernels against cuBLAS, cuDNN and a copy, whole steps beside PyTorch where python3 (or
# $TORCH_PYTHON) has it, less precision against float32, a cluster on one GPU, the same bits twice.
# Builds into build-gpu/, or takes what was built in BUILD. Figures and all that was said are in BUILD/gpu-logs/.
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
    need_build
    need g++ libcmocka-dev
    set -- build-gpu
    build "$1" -Dtests=enabled -Dcuda=enabled
fi
export CUDA_DEVICE_ORDER="${CUDA_DEVICE_ORDER:-PCI_BUS_ID}" # the driver counts GPUs so
# cuBLAS and cuDNN are looked for among this Python's packages too
export VIRTUAL_ENV="${VIRTUAL_ENV:-$("$python" -c 'import sys; print(sys.prefix)' || true)}"
here=$1/tests/cuda
logs=$1/gpu-logs
failures=0
passes=0
rm -rf "$logs" # figures of another run would stand in the table
mkdir -p "$logs"

# line LIMIT_S NAME COMMAND...: runs it, and prints what has come of it and after how long
line() {
    limit_s=$1
    name=$2
    shift 2
    began=$(date +%s)
    status=0
    timeout -k 60 "$limit_s" "$@" > "$logs/$name.log" 2>&1 < /dev/null || status=$?
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

# sanitize TOOL NAME COMMAND...
sanitize() {
    tool=$1
    name=$2
    shift 2
    line "$test_limit_s" "$name-$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 "$@"
}

# sanitize_all TOOL: all but the curves and gradients, which would take hours. Memory of the GPU's own, streams and
# recordings are in the sessions alone.
sanitize_all() {
    for test in $tests; do
        case $test in
        curves | gradients) ;;
        *) sanitize "$1" "$test" "$here/test_gpu_$test" ;;
        esac
    done
    for test in $bare_tests; do sanitize "$1" "$test-bare" env GPU_BARE=1 "$here/test_gpu_$test"; done
    sanitize "$1" sessions "$sessions"
}

"$1/cmd/dtrain" devices
tests=$(find "$here" -maxdepth 1 -type f -name 'test_gpu_*' | sed 's,.*/test_gpu_,,' | sort)
for test in $tests; do line "$test_limit_s" "$test" "$here/test_gpu_$test"; done
sessions=$1/tests/device/test_gpu_sessions
line "$test_limit_s" sessions "$sessions"
[ "$passes" -gt 0 ] || { echo "nothing ran on the GPU, though its driver is there"; exit 1; }
# Our own products and convolutions, where libraries would take their place
bare_tests='gemm image precision'
for test in $bare_tests; do
    line "$test_limit_s" "$test-bare" env GPU_BARE=1 "$here/test_gpu_$test"
done

if command -v compute-sanitizer > /dev/null; then
    for each in memcheck initcheck racecheck synccheck; do sanitize_all "$each"; done
else
    echo "compute-sanitizer is not installed: memory and races were not looked at"
fi

line "$figures_limit_s" bench "$here/bench_gpu" --json "$logs/bench.json"
for part in bits precision steps cluster; do
    line "$figures_limit_s" "gpu-$part" python3 -B "$tests_folder/bench/gpu.py" --dtrain "$1/cmd/dtrain" \
        --parts "$part" --torch-python "$python" --json "$logs/gpu-$part.json"
done

echo
python3 -B "$tests_folder/bench/gpu_table.py" "$logs" | tee "$logs/table.txt"
[ "$failures" -eq 0 ] || { echo "$failures failed; all they said is in $logs/"; exit 1; }
