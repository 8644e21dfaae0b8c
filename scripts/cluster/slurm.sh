#!/bin/bash
# A campaign of amkc search on a Slurm cluster, round by round, from a machine that has sbatch:
#
#     BUILD='--partition=cpu' JUDGE='--partition=gpu --gres=gpu:1' slurm.sh CAMPAIGN MODEL --trials 200 \
#         --device cuda --target h100
#
# What follows CAMPAIGN is what amkc search plan takes. The directory CAMPAIGN, the model, the key of verdicts and the
# cache of builds (AMKC_CACHE) lie where all nodes have them. Whoever stops this script may start it again.
#
# AMKC    the executable, on all nodes
# STAGES  build judge, one array after the other; judge alone for a campaign of predictions, which builds nothing
# BUILD   flags of sbatch for the stage that proves and compiles
# JUDGE   flags of sbatch for the stage that measures: a GPU to each task
set -euo pipefail
campaign=$(realpath -m "$1")
shift
here=$(dirname "$(realpath "$0")")
export AMKC=${AMKC:-amkc}
log=$campaign/log
mkdir -p "$log"
attempts=3 # of a round whose tasks failed

while true; do
    planned=$("$AMKC" search plan "$@" -o "$campaign" | sed -n 's/^planned: //p')
    [ "$planned" -gt 0 ] || break
    for attempt in $(seq $attempts); do
        for stage in ${STAGES:-build judge}; do
            flags=${BUILD:-}
            [ "$stage" = build ] || flags=${JUDGE:-}
            # shellcheck disable=SC2086 # several flags
            sbatch --quiet --wait --array=0-$((planned - 1)) --output="$log/%x-%A_%a.out" $flags \
                "$here/search.sbatch" "$campaign" "$stage" || true
        done
        "$AMKC" search merge -o "$campaign" >/dev/null && break
        [ "$attempt" -lt $attempts ] || { echo "slurm.sh: a round is not complete after $attempts attempts" >&2; exit 1; }
    done
done
"$AMKC" campaign status "$campaign"
