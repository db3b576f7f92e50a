#!/usr/bin/env bash
# build_twice.sh DIR: wheel and sdist into DIR, made twice; fails unless both are the same bytes.
# Needs the extra `release`. The date in the archives is that of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
python -m build --no-isolation --outdir "$out" .
python -m build --no-isolation --outdir "$again" .
for file in "$again"/*; do
  cmp "$file" "$out/$(basename "$file")"
done
python -m twine check --strict "$again"/*
(cd "$again" && sha256sum -- *)
