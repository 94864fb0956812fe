#!/bin/sh
# gpu.sh [BUILD [PART...]] - everything that is to be known of dtrain on this machine's GPU: the tests of kernels, ops
# and training curves, the same under compute-sanitizer where it is installed, and then one table of all figures, each
# beside its goal: the kernels against cuBLAS, cuDNN and a copy, whole steps beside PyTorch where python3 (or
# $TORCH_PYTHON) has it, less precision against float32, a cluster on one GPU, the same bits twice.
# Builds into build-gpu/, or takes what was built in BUILD. Figures and all that was said are in BUILD/gpu-logs/, or
# where $GPU_LOGS says.
# PARTS: tests, memcheck, initcheck, racecheck, synccheck, bench, bits, precision, steps, cluster, table; what others
# have left among the logs stays, and the table has it too. Ended by a signal it still prints the table so far.
#
# Where a machine with a GPU can be had for minutes alone, and has a driver and python3 but no compiler:
#
#   gpu.sh pack    here: builds into build-gpu/ and packs what the other two need into build-gpu/gpu-pack.tar.gz
#   gpu.sh quick   there, in a copy of the sources with that file: what matters most first, a line each as it comes,
#                  a minute each at most, less than eight minutes in all: what does not fit is named
#   gpu.sh full    the same as without words, of the packed programs: an hour or more
#
# Nothing else should run on the GPU. The exit code says whether all went well, not whether goals were met: 1 where
# something failed, 124 where nothing did, but not all was done in the time there is. Without a GPU: 77, skipped.
set -eu
test_limit_s=1200    # of each test
figures_limit_s=5400 # of each line of figures
quick_limit_s=450    # of all lines of the quick run; the rest of its eight minutes is for ending the last, and the table
grace_s=60           # for a program that is to end, before it is killed

have_gpu() {
    [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]
}

# The programs, without what only a debugger reads, and beside them the libraries that a bare machine lacks: the
# programs look for those beside themselves, so that nothing else there, python least of all, is led to them.
pack() {
    build=build-gpu
    [ -f $build/build.ninja ] || meson setup $build > /dev/null
    meson configure $build -Dtests=enabled -Dcuda=enabled \
        -Dc_link_args='-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib:$ORIGIN/../lib:$ORIGIN/../../lib'
    ninja -C $build build.ninja > /dev/null
    grep -q 'new-dtags,-rpath,.*ORIGIN' $build/build.ninja ||
        { echo "gpu.sh: programs of $build/ would not find the libraries beside them: pack without that folder"; exit 1; }
    programs=$(ninja -C $build -t targets all |
        sed -n 's,^\(cmd/dtrain\|tests/cuda/test_gpu_[a-z_]*\|tests/cuda/bench_gpu\|tests/device/test_gpu_[a-z]*\): .*,\1,p' | sort -u)
    # shellcheck disable=SC2086
    ninja -C $build $programs > $build/pack.log 2>&1 || { tail -n 20 $build/pack.log; exit 1; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/lib"
    for program in $programs; do
        mkdir -p "$work/${program%/*}"
        strip -o "$work/$program" "$build/$program"
        ldd "$build/$program"
    done | awk '$3 ~ /^\// { print $3 }' | sort -u |
        grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' | while read -r library; do
        cp -L "$library" "$work/lib/"
        strip --strip-unneeded "$work/lib/${library##*/}" 2> /dev/null || true
    done
    pwd > "$work/built-in"
    tar -C "$work" -czf $archive .
    cksum < $archive > $build/unpacked # what is in it is here
    du -h $archive
}

# What was packed elsewhere, unless it was already.
unpack() {
    if [ -f $archive ] && [ "$(cksum < $archive)" != "$(cat build-gpu/unpacked 2> /dev/null)" ]; then
        tar -C build-gpu -xzf $archive
        cksum < $archive > build-gpu/unpacked
    fi
    [ -f build-gpu/cmd/dtrain ] || { echo "gpu.sh: $archive is not here: gpu.sh pack makes it"; exit 2; }
}

# A test looks for its files where it was built: while this runs a link leads from there to here. Of the folders above it
# those go again that were not there before.
link_place() {
    place=$(cat build-gpu/built-in 2> /dev/null || pwd)
    [ "$(cd "$place" 2> /dev/null && pwd -P)" != "$(pwd -P)" ] || return 0
    if [ -e "$place" ] || [ -L "$place" ]; then
        echo "gpu.sh: tests look for their files in $place, where they were built, and that is something else here"
        exit 2
    fi
    outermost=$place
    while up=${outermost%/*} && [ -n "$up" ] && [ ! -e "$up" ]; do outermost=$up; done
    trap unlink_place EXIT
    trap 'exit 143' INT TERM HUP
    (mkdir -p "${place%/*}" && ln -s "$PWD" "$place") || exit 2
    echo "gpu.sh: $place is a link to here until this ends: tests look for their files there"
}

unlink_place() {
    rm -f "$place"
    while [ "$place" != "$outermost" ]; do
        place=${place%/*}
        rmdir "$place" 2> /dev/null || break
    done
}

archive=build-gpu/gpu-pack.tar.gz
python=${TORCH_PYTHON:-python3}
if [ "${1:-}" = pack ]; then
    cd "$(dirname "$0")/.."
    PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:/usr/local/cuda/bin:/opt/cuda/bin
    pack
    exit
fi
have_gpu || { echo "gpu.sh: skipped: no GPU: neither /dev/nvidiactl nor /dev/dxg is there"; exit 77; }
tests_folder=$(cd "$(dirname "$0")" && pwd)
is_quick=
began_s=$(date +%s)
case ${1:-} in
quick | full)
    cd "$tests_folder/.."
    unpack
    link_place
    [ "$1" = full ] || is_quick=yes
    set -- build-gpu
    ;;
esac
if [ $# -eq 0 ]; then
    cd "$tests_folder/.."
    . examples/setup.sh
    # A machine without a network may have all of it from elsewhere; else meson says what is missing.
    (need_build && need g++ libcmocka-dev) || say 'continues with what is here'
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
logs=${GPU_LOGS:-$build/gpu-logs}
deadline_s= # of the whole, since 1970; empty: it has none
child=    # what runs now
children= # or several
mkdir -p "$logs"
results=$logs/results.txt # of this run, a line each
[ $# -gt 0 ] || rm -f "$logs"/*.json "$logs"/*.log "$logs"/table.txt # figures of another run would stand in the table
: > "$results"

wanted() { case " $parts " in *" $1 "*) ;; *) return 1 ;; esac; }

table() {
    echo
    python3 -B "$tests_folder/bench/gpu_table.py" "$logs" > "$logs/table.txt" || echo 'table failed' >> "$results"
    cat "$logs/table.txt"
}

# How many lines ended so
count() { grep -c " $1" "$results" || true; }

# timeout(1) is in a group of its own, which no Ctrl-C and nobody who ends this script reaches.
stop() {
    trap '' INT TERM HUP
    for one in $child $children; do
        kill -TERM "$one" 2> /dev/null || true
        wait "$one" || true
    done
    table
    exit 143
}
trap stop INT TERM HUP

# attempt LIMIT_S NAME COMMAND...: runs it for so long, or for what is left of the whole; status is its exit code, long,
# or late where nothing is left
attempt() {
    limit_s=$1
    name=$2
    shift 2
    began=$(date +%s)
    took_s=0
    status=0
    : > "$logs/$name.log"
    if [ -n "$deadline_s" ] && [ "$limit_s" -gt $((deadline_s - began)) ]; then
        limit_s=$((deadline_s - began))
        [ "$limit_s" -gt 0 ] || { status=late; return; }
    fi
    timeout -k "$grace_s" "$limit_s" "$@" > "$logs/$name.log" 2>&1 < /dev/null &
    child=$!
    wait "$child" || status=$?
    child=
    took_s=$(($(date +%s) - began))
    case $status in
    124 | 137) [ "$took_s" -lt "$limit_s" ] || status=long ;; # else somebody else has killed it
    esac
}

# line LIMIT_S NAME COMMAND...: runs it, and prints what has come of it and after how long
line() {
    attempt "$@"
    case $status in
    0) result=ok ;;
    77) result=skipped ;;
    long) result="too long: more than $limit_s s" ;;
    late) result='too late: not begun' ;;
    *) result="failed ($status)" ;;
    esac
    {
        printf '%-28s %-28s %5d s\n' "$name" "$result" "$took_s"
        case $status in
        0 | late) ;;
        77) tail -n 1 "$logs/$name.log" ;;
        *) tail -n 20 "$logs/$name.log" ;;
        esac
    } > "$logs/$name.said"
    head -n 1 "$logs/$name.said" >> "$results"
    cat "$logs/$name.said" # at once: others may write beside it
    rm -f "$logs/$name.said"
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

# Whether all went well
end() {
    failures=$(count failed)
    unfinished=$(count too)
    [ "$unfinished" -eq 0 ] || echo "$unfinished not done in the time there is"
    [ "$failures" -eq 0 ] || { echo "$failures failed; all they said is in $logs/"; exit 1; }
    [ "$unfinished" -eq 0 ] || exit 124
    exit 0
}

tests=$(find "$here" -maxdepth 1 -type f -name 'test_gpu_*' | sed 's,.*/test_gpu_,,' | sort)
sessions=$build/tests/device/test_gpu_sessions
bare_tests='gemm image precision' # our own products and convolutions, where libraries would take their place

# four COMMAND ARGUMENT...: the command with each argument, four at a time
four() {
    command=$1
    shift
    while [ $# -gt 0 ]; do
        children=
        for argument in "$1" ${2:+"$2"} ${3:+"$3"} ${4:+"$4"}; do
            (trap 'kill -TERM "$child" 2> /dev/null; exit 143' TERM && "$command" "$argument") &
            children="$children $!"
        done
        # shellcheck disable=SC2086
        wait $children || true
        children=
        shift "$(($# < 4 ? $# : 4))"
    done
}

# What a machine can tell in minutes, the most telling first. Each line has a minute, while there is one.
minute=60
quick() {
    deadline_s=$((began_s + quick_limit_s))
    grace_s=5
    line $minute machine sh -c 'nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current,mig.mode.current,compute_mode,power.limit --format=csv 2>&1
        lscpu 2> /dev/null | grep -E "^(Model name|CPU\(s\))"
        for turn in first second; do
            began=$(date +%s%N)
            "$1/cmd/dtrain" devices || exit
            echo "the $turn time after $((($(date +%s%N) - began) / 1000000)) ms"
        done' sh "$build"
    cat "$logs/machine.log"
    line $minute ways "$here/bench_gpu" --parts machine
    cat "$logs/ways.log"
    # shellcheck disable=SC2086
    four quick_test $(echo "$tests" | grep -vx curves)
    line $minute sessions "$sessions"
    line $minute products "$here/bench_gpu" --json "$logs/bench.json" --parts products
    cat "$logs/products.log"
    line $minute products-bare "$here/bench_gpu" --bare --parts products
    cat "$logs/products-bare.log"
    line $minute convolutions "$here/bench_gpu" --json "$logs/bench-convolutions.json" --parts convolutions
    line $minute convolutions-bare "$here/bench_gpu" --bare --parts convolutions
    cat "$logs/convolutions.log" "$logs/convolutions-bare.log"
    for workload in mlp_adam cnn cnn12; do
        python_line "gpu-steps-$workload" --parts steps --only "$workload" --precisions float32,tf32 --torch-ways graph
    done
    python_line gpu-cluster --parts cluster --only mlp_adam
    python_line gpu-bits --parts bits --only mlp_adam
    if can_sanitize "$minute"; then
        for tool in memcheck racecheck; do
            for test in gemm image reduce; do
                line $minute "$test-$tool" env GPU_BARE=1 compute-sanitizer --tool "$tool" --report-api-errors no \
                    --error-exitcode 9 "$here/test_gpu_$test"
            done
        done
    fi
}

quick_test() { line "$minute" "$1" "$here/test_gpu_$1"; }

# Runs of whole programs, in short windows
python_line() {
    name=$1
    shift
    line $minute "$name" python3 -B "$tests_folder/bench/gpu.py" --dtrain "$build/cmd/dtrain" --torch-python "$python" \
        --windows 3 --seconds 0.5 --json "$logs/$name.json" "$@"
    cat "$logs/$name.log"
}

# can_sanitize LIMIT_S: on some virtual machines it refuses GPUs. Where no time is left its lines say so.
can_sanitize() {
    command -v compute-sanitizer > /dev/null ||
        { echo "compute-sanitizer was not found: memory and races were not looked at"; return 1; }
    attempt "$1" sanitizer compute-sanitizer "$build/cmd/dtrain" devices
    if [ "$status" = long ]; then
        printf '%-28s %-28s %5d s\n' sanitizer "too long: more than $limit_s s" "$took_s" | tee -a "$results"
        echo "memory and races were not looked at"
        return 1
    fi
    if grep 'Device not supported' "$logs/sanitizer.log"; then
        echo "compute-sanitizer does not work here: memory and races were not looked at"
        return 1
    fi
}

if [ -n "$is_quick" ]; then
    quick
    table
    end
fi
"$build/cmd/dtrain" devices
if wanted tests; then
    for test in $tests; do line "$test_limit_s" "$test" "$here/test_gpu_$test"; done
    line "$test_limit_s" sessions "$sessions"
    [ "$(count ok)" -gt 0 ] || { echo "nothing ran on the GPU, though its driver is there"; exit 1; }
    for test in $bare_tests; do
        line "$test_limit_s" "$test-bare" env GPU_BARE=1 "$here/test_gpu_$test"
    done
fi

case " $parts " in
*check\ *)
    if can_sanitize "$test_limit_s"; then
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
end
