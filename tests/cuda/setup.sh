#!/bin/sh
# setup.sh ROOT - a build is set up without CUDA, and says why, where nvcc cannot compile; it is not set up where CUDA
# must be there. An nvcc that says what a real one says of a g++ that is too new stands for it.
set -eu
command -v meson > /dev/null || exit 77
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/cuda/bin" "$work/cuda/lib64"
cat > "$work/cuda/bin/nvcc" << 'END'
#!/bin/sh
case "$*" in
*--list-gpu-code*) printf 'sm_80\nsm_90\n' ;;
*--version*) echo 'nvcc 12.1' ;;
*) printf 'host_config.h:138: error: unsupported GNU version!\nand more of it\n' >&2 && exit 1 ;;
esac
END
ln -s nvcc "$work/cuda/bin/g++" # which nvcc would need, and a machine without C++ does not have
chmod +x "$work/cuda/bin/nvcc"
echo 'int nothing;' > "$work/nothing.c"
cc -c "$work/nothing.c" -o "$work/nothing.o"
ar rc "$work/cuda/lib64/libcudart_static.a" "$work/nothing.o"
PATH=$work/cuda/bin:$PATH

said='nvcc cannot compile: host_config.h:138: error: unsupported GNU version!'
meson setup "$work/auto" "$root" -Dtests=disabled -Dcuda=auto > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep "CUDA *: not built: .*$said" "$work/log"
if meson setup "$work/enabled" "$root" -Dtests=disabled -Dcuda=enabled > "$work/log" 2>&1; then
    echo 'set up with CUDA that cannot be built'
    exit 1
fi
grep "ERROR: .*$said" "$work/log"
