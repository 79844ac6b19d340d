#!/usr/bin/env bash
# Runs an experiment on the Ray cluster that this machine belongs to, or what is missing of it. Run again, it continues.
set -euo pipefail
resume=()
if compgen -G "results/*/run.json" > /dev/null; then
    resume=(--resume latest)
fi
exec karat run "${EXPERIMENT:-experiment.yaml}" --results results --executor ray --address auto "${resume[@]}"
