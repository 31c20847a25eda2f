#!/bin/bash
# One lab on several nodes with GPUs, one process for each GPU:
#     sbatch --nodes=2 --gpus-per-node=8 labs/slurm.sh labs/lab1_ring.py
# Submit from the repository's folder, after `make labs` has made .venv-labs where all nodes see it.
#SBATCH --job-name=labs
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=00:10:00
set -euo pipefail

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export OMP_NUM_THREADS=1
echo "nodes: $(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\n' ' ')"     # who is missing, if torchrun waits in vain

srun --kill-on-bad-exit=1 .venv-labs/bin/python -m torch.distributed.run \
  --nnodes="$SLURM_NNODES" --nproc-per-node="$SLURM_GPUS_ON_NODE" \
  --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d --rdzv-endpoint="$first:29500" \
  --rdzv-conf=join_timeout=45,read_timeout=15 \
  "${@:-labs/lab1_ring.py}"
