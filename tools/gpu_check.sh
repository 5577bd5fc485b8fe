#!/usr/bin/env bash
# Checks and measures fusejit on a machine that has a GPU, its driver, NVRTC and cuDNN, and nothing else: no compiler, no
# LLVM, no source tree. Made up on a machine that has these, and without a GPU.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() {
  cat <<'TEXT'
tools/gpu_check.sh --pack [FILE]   build the program, compile and plan for it, and put everything that a machine with a
                                   GPU needs into FILE (build/gpu_check.tar.gz)
./gpu_check.sh [ARG…]              there, unpacked: run it; results are in gpu_check.json and gpu_check.txt. Arguments
                                   are those of fusejit-gpu-check (--help), for example --only steps,peers --minutes 10
TEXT
}

pack() {
  cd "$here/.."
  local file=${1:-build/gpu_check.tar.gz}
  [[ -f build/cuda-only/build.ninja ]] || cmake --preset cuda-only > /dev/null
  cmake --build --preset cuda-only --target fusejit-gpu-check
  folder=$(mktemp -d)  # for the trap, too
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder/gpu_check/peers"
  install -s build/cuda-only/bin/fusejit-gpu-check "$folder/gpu_check/"
  cp tools/gpu_check.sh "$folder/gpu_check/"
  cp bench/peers/pytorch_resnet.py "$folder/gpu_check/peers/"
  "$folder/gpu_check/fusejit-gpu-check" --carry "$folder/gpu_check/carried"
  mkdir -p "$(dirname "$file")"
  tar -C "$folder" -czf "$file" gpu_check
  echo "$file: $(du -h "$file" | cut -f 1); on the machine with the GPU: tar xf $(basename "$file") && gpu_check/gpu_check.sh"
}

# Folders that hold the library and are not on the loader's path: a toolkit's, and those of Python's wheels.
folders_with() {
  local python
  ls -d /usr/local/cuda*/lib64 /usr/local/cuda*/targets/x86_64-linux/lib "${XDG_CACHE_HOME:-$HOME/.cache}"/fusejit/cuda/nvidia/*/lib 2> /dev/null || true
  for python in python3 python; do
    command -v "$python" > /dev/null || continue
    "$python" -c 'import glob, site, sys
for folder in site.getsitepackages() + [site.getusersitepackages()]:
    print(*glob.glob(folder + "/nvidia/*/lib"), sep="\n")' 2> /dev/null || true
    break
  done
}

run() {
  local program=$here/fusejit-gpu-check folder
  [[ -x $program ]] || program=$here/../build/cuda-only/bin/fusejit-gpu-check
  [[ -x $program ]] || { echo "gpu_check: $program is not there; tools/gpu_check.sh --pack makes it" >&2; return 5; }
  while IFS= read -r folder; do
    [[ -d $folder ]] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
  done < <(folders_with)
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
  local arguments=(--json gpu_check.json --table gpu_check.txt)
  [[ -d $here/carried ]] && arguments+=(--carried "$here/carried")
  if [[ -d $here/peers ]]; then
    arguments+=(--peers "$here/peers")
  elif [[ -d $here/../bench/peers ]]; then
    arguments+=(--peers "$here/../bench/peers")
  fi
  "$program" "${arguments[@]}" "$@"
}

case "${1:-}" in
  --pack) pack "${@:2}" ;;
  -h | --help) usage ;;
  *) run "$@" ;;
esac
