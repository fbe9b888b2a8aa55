#!/usr/bin/env bash
# make demo: the whole life of an archive on 20,000 seeded small files, each step timed, the result compared bit by bit.
#
# Everything happens in one temporary directory, which is removed at the end, also after a failure.
# Usage: bench/demo.sh [FILES=20000] [SEED=7]. Set TMPDIR to try another file system.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

files=${1:-20000}
seed=${2:-7}
programs=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release

say() { printf '\n== %s\n' "$*"; }

say "building"
cargo build --release --locked -p stook-cli -p stook-testkit

work=$(mktemp -d "${TMPDIR:-/tmp}/stook-demo.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
source=$work/source archive=$work/archive extracted=$work/extracted
log=$work/output table=$work/table
: >"$table"

# step NAME FILES BYTES COMMAND...: runs the command, keeps its output in $log, shows what it says about itself, adds a
# row to the table. Ends the demo when the command fails.
step() {
    local name=$1 step_files=$2 step_bytes=$3 started ended
    shift 3
    say "$name"
    started=$EPOCHREALTIME
    if ! "$@" >"$log" 2>"$log.errors"; then
        echo "FAILED: $*" >&2
        tail -n 20 "$log" "$log.errors" >&2
        exit 1
    fi
    ended=$EPOCHREALTIME
    sed 's/^/   /' "$log.errors"
    printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$started" "$ended" "$step_files" "$step_bytes" >>"$table"
}

stook() {
    local verb=$1
    shift
    "$programs/stook" "$verb" -v --timings "$@"
}

count_files() { find "$1" -type f | wc -l; }
count_bytes() { find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

# Grows every 100th file, deletes every 250th, adds 100 files, a link and an empty directory; the same for the same seed.
change_source() {
    find "$source" -type f | sort | awk -v changed="$work/changed" -v deleted="$work/deleted" '
        NR % 250 == 1 { print > deleted; next }
        NR % 100 == 0 { print > changed }'
    while IFS= read -r path; do echo "grown by the demo" >>"$path"; done <"$work/changed"
    xargs -d '\n' rm -- <"$work/deleted"
    mkdir -p "$source/added/empty"
    for number in {001..100}; do echo "new file $number" >"$source/added/$number.txt"; done
    ln -s ../added/001.txt "$source/added/link"
}

compare_one_file() { stook cat "$archive" "${probe#"$source"/}" | cmp - "$probe"; }

print_table() {
    awk -F '\t' '
        function rate(amount, seconds) { return amount == 0 ? "-" : sprintf("%.0f", amount / seconds) }
        BEGIN { printf "%-34s %9s %9s %9s\n", "step", "seconds", "files/s", "MB/s" }
        {
            seconds = $3 - $2
            if (seconds < 1e-6) seconds = 1e-6
            printf "%-34s %9.3f %9s %9s\n", $1, seconds, rate($4, seconds), rate($5 / 1e6, seconds)
        }' "$table"
}

step "make $files files, seed $seed" "$files" 0 "$programs/stook-fileset" "$source" "$files" "$seed"
bytes=$(count_bytes "$source")
step "create" "$files" "$bytes" stook create "$source" "$archive"

say "changing the source"
change_source
changed=$(($(wc -l <"$work/changed") + 100))
changed_bytes=$(($(xargs -d '\n' cat <"$work/changed" | wc -c) + $(count_bytes "$source/added")))
echo "   $(wc -l <"$work/changed") files grown, $(wc -l <"$work/deleted") deleted, 100 added"
files=$(count_files "$source") bytes=$(count_bytes "$source")

step "diff" "$files" 0 stook diff "$source" "$archive"
[[ -s $log ]] || { echo "FAILED: diff found nothing, though files were changed" >&2; exit 1; }
step "update ($changed files changed or new)" "$changed" "$changed_bytes" stook update "$source" "$archive"
step "update, nothing changed" "$files" 0 stook update "$source" "$archive"
step "check" "$files" "$(du -sb "$archive" | cut -f 1)" stook check "$archive"
step "list" "$files" 0 stook list "$archive"
probe=$(head -n 1 "$work/changed")
grep -qF -- "${probe#"$source"/}" "$log" || { echo "FAILED: list does not name ${probe#"$source"/}" >&2; exit 1; }
step "cat of one file" 1 0 compare_one_file
step "extract" "$files" "$bytes" stook extract "$archive" --into "$extracted"
step "compare source and extracted" "$files" "$((2 * bytes))" \
    "$programs/stook-same-tree" "$source" "$extracted"

say "done: source and extracted tree are equal, in bytes, modes, owners, times and links"
print_table
