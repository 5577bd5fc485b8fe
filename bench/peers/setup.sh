#!/bin/sh
# Makes a Python environment with the peers of bench/cpu.py, and PyTorch for remaking tests/reference. Only on request:
# building and testing fusejit never needs it.
#
#   bench/peers/setup.sh [FOLDER]      default: .venv in the root of the repository, which git ignores
#
# TORCH names another version: TORCH=2.14.1 bench/peers/setup.sh. The default wheel brings CUDA libraries (5 GiB on disk),
# which the benchmarks do not use. tcmalloc is the system's (apt-get install libtcmalloc-minimal4).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-"$root/.venv"}
python3 -m venv "$folder"
folder=$(cd "$folder" && pwd)
"$folder/bin/pip" install --quiet --no-cache-dir "torch==${TORCH:-2.15.0}" -r "$root/bench/peers/requirements.txt"

# oneDNN twice: the newest release is built for SYCL, whose processors are TBB's threads; the last wheel for OpenMP is of
# 2023. Which is faster depends on the machine and on what else runs there.
"$folder/bin/pip" install --quiet --no-cache-dir --no-deps --ignore-installed --prefix "$folder/onednn-openmp" \
  onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
for kind in sycl openmp; do
  prefix=$folder
  [ "$kind" = sycl ] || prefix=$folder/onednn-openmp
  # An old-style run path: it holds for what the library itself needs too.
  ${CXX:-g++} -O2 -std=c++20 -I"$root" -I"$prefix/include" "$root"/bench/peers/onednn/*.cpp \
    -o "$folder/bin/onednn_contender_$kind" -L"$prefix/lib" -l:libdnnl.so.3 \
    -Wl,-rpath,"$prefix/lib" -Wl,--disable-new-dtags -Wl,--allow-shlib-undefined
done
"$folder/bin/python" -c 'import torch; print("torch", torch.__version__, "with", torch.get_num_threads(), "threads")'
