#!/usr/bin/env bash
# Runs the device suite under compute-sanitizer, in parts at once; needs a GPU.
#   sanitize.sh [TOOL...]     memcheck racecheck synccheck initcheck (default: the first two)
# TEST is the test binary (default: it is built), LIMIT the seconds for a part,
# JOBS the parts at once (default 2), OUT a folder that keeps the logs, SANITIZER the program.
set -uo pipefail
cd "$(dirname "$0")"
test=${TEST:-} limit=${LIMIT:-600} jobs=${JOBS:-2} out=${OUT:-$(mktemp -d)}
sanitizer=${SANITIZER:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
[ -x "$sanitizer" ] || { echo "no compute-sanitizer: install it (CUDA toolkit) or set SANITIZER" >&2; exit 1; }
mkdir -p "$out"
if [ -z "$test" ]; then
  test=$out/cuda.test
  ${GO:-go} test -tags cuda -c -o "$test" . || exit 1
fi
# The suite's subtests, a part a line; what no part names is the last one. Few
# parts: each process takes seconds to start and tens of GB of the GPU.
parts='gemm_|q_absorb|v_up
moe_
mla_attend|index_|latent_write|kv_cast'
named=$(tr '\n' '|' <<<"$parts" | sed 's/|$//')
part() { # tool, part
  local log=$out/$1.$(tr -c 'a-z0-9\n' _ <<<"$2") only=(-test.run "TestDevice/($2)" -test.skip 'TestDevice/.*/ranks') # the same kernels on two ranks
  export CUDA_MODULE_LOADING=LAZY # else every process waits until all kernels have been instrumented
  # Ranks wait for each other, and must not wait for a kernel to be loaded.
  [ "$2" = rest ] && only=(-test.run 'TestDevice' -test.skip "TestDevice/($named)") CUDA_MODULE_LOADING=EAGER
  local api=() from=$SECONDS
  [ "$1" = memcheck ] && api=(--report-api-errors no) # the suite asks for more memory than there is
  timeout -k 2 "$limit" "$sanitizer" --tool "$1" "${api[@]}" --print-limit 10 --error-exitcode 86 --log-file "$log.log" \
    "$test" -test.short -test.v -test.timeout "${limit}s" "${only[@]}" >"$log.txt" 2>&1
  local rc=$?
  printf '%-10s %-32s rc %-3s %3d s  %s tests, %s failed  %s\n' "$1" "$2" $rc $((SECONDS - from)) "$(grep -c -- '--- PASS' "$log.txt")" "$(grep -c -- '--- FAIL' "$log.txt")" \
    "$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log.log" 2>/dev/null | tail -1 | sed 's/=* //')"
  return $rc
}
export -f part
export out test limit sanitizer named
[ $# -gt 0 ] || set -- memcheck racecheck
status=0
for tool in "$@"; do
  (echo "$parts"; echo rest) | sed "s/^/$tool\n/" | xargs -d '\n' -n 2 -P "$jobs" bash -c 'part "$@"' _ || status=1
done
exit $status
