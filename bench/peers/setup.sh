#!/bin/sh
# Makes a Python environment with PyTorch for the peer benchmarks and for remaking tests/reference. Only on request:
# building and testing fusejit never needs it.
#
#   bench/peers/setup.sh [FOLDER]      default: .venv in the root of the repository, which git ignores
#
# TORCH names another version: TORCH=2.14.1 bench/peers/setup.sh. The default wheel brings CUDA libraries (5 GiB on disk),
# which the benchmarks do not use.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-"$root/.venv"}
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --no-cache-dir "torch==${TORCH:-2.15.0}" numpy
"$folder/bin/python" -c 'import torch; print("torch", torch.__version__, "with", torch.get_num_threads(), "threads")'
