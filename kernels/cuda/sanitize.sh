#!/usr/bin/env bash
# Runs the device suite under compute-sanitizer, in parts at once; needs a GPU.
#   sanitize.sh [TOOL...]     memcheck racecheck synccheck initcheck (default: the first two)
# TEST is the test binary (default: it is built), LIMIT the seconds for a part,
# JOBS the parts at once, OUT a folder that keeps the logs, SANITIZER the program.
set -uo pipefail
cd "$(dirname "$0")"
test=${TEST:-} limit=${LIMIT:-600} jobs=${JOBS:-$(nproc)} out=${OUT:-$(mktemp -d)}
sanitizer=${SANITIZER:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
[ -x "$sanitizer" ] || { echo "no compute-sanitizer: install it (CUDA toolkit) or set SANITIZER" >&2; exit 1; }
mkdir -p "$out"
if [ -z "$test" ]; then
  test=$out/cuda.test
  ${GO:-go} test -tags cuda -c -o "$test" . || exit 1
fi
# The suite's subtests, a part a line; what no part names is the last one.
parts='gemm_f32|gemm_bf16
gemm_fp8
gemm_fp4$
gemm_fp4a4
gemm_fp4a8
q_absorb|v_up
embed|norm$|silu_mul|gather_rows
latent_write|index_write|kv_cast
index_logits
index_topk
mla_attend_f32
mla_attend_bf16
mla_attend_fp8
moe_route|moe_up_f32|moe_up_bf16
moe_up_fp4$
moe_up_fp4a
moe_down_f32|moe_down_bf16
moe_down_fp4$
moe_down_fp4a
sample
^all_'
named=$(tr '\n' '|' <<<"$parts" | sed 's/|$//')
part() { # tool, part
  local log=$out/$1.$(tr -c 'a-z0-9\n' _ <<<"$2") only=(-test.run "TestDevice/($2)")
  [ "$2" = rest ] && only=(-test.run 'TestDevice' -test.skip "TestDevice/($named)")
  local from=$SECONDS
  timeout -k 2 "$limit" "$sanitizer" --tool "$1" --print-limit 10 --error-exitcode 86 --log-file "$log.log" \
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
