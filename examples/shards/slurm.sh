#!/usr/bin/env bash
#SBATCH --job-name=karat
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --requeue
# sbatch slurm.sh, from a folder that all nodes share; then: karat runs merge shards/*
set -euo pipefail
bash shard.sh "$SLURM_ARRAY_TASK_ID" "$SLURM_ARRAY_TASK_COUNT"
