#!/usr/bin/env bash
# The GPU check on a machine with a card: gpu-check.sh [FOLDER]; the page goes into FOLDER, or here. Builds nothing, needs no network.
# The check keeps its own limit of seven and a half minutes; the one here is for a check that does not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec timeout --kill-after=5 470 "$here/gpucheck" -out "${1:-$here}"
