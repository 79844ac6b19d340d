#!/usr/bin/env bash
# Runs one shard of an experiment, or what is missing of it: shard.sh I N. Run again after a crash, it continues.
set -euo pipefail
shard=$1
shards=$2
results="shards/$shard"
resume=()
if compgen -G "$results/*/run.json" > /dev/null; then
    resume=(--resume latest)
fi
exec karat run "${EXPERIMENT:-experiment.yaml}" --shard "$shard/$shards" --results "$results" "${resume[@]}"
