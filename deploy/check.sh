#!/usr/bin/env bash
# Checks the deploy files with the programs that will read them: systemd-analyze, the
# schema that Kubernetes publishes (PyPI: kubernetes-validate), bash.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
if ! "$python" -c 'import kubernetes_validate' 2>/dev/null; then
  [ -x .venv/bin/python ] || python3 -m venv .venv
  python=.venv/bin/python
  "$python" -m pip install --quiet --disable-pip-version-check kubernetes-validate==1.37.0
fi
for f in deploy/slurm/*.sbatch deploy/slurm/*.sh; do bash -n "$f"; done
"$python" -m kubernetes_validate --strict deploy/kubernetes/*.yaml
if command -v systemd-analyze >/dev/null; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for f in deploy/systemd/*; do sed "s|/usr/local/bin/glmbatch|$(command -v true)|" "$f" > "$work/$(basename "$f")"; done
  systemd-analyze verify --man=no "$work/glmbatch.service" "$work/glmbatch.timer"
  systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' deploy/systemd/glmbatch.timer)" >/dev/null
else
  echo "systemd-analyze is not here: the units were not checked"
fi
echo "deploy files: checked"
