#!/bin/sh
# Builds .venv with every extra and every development dependency, from requirements.lock alone.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "make env: $python is missing or older than 3.11; install Python 3.11 or newer, or name it: make env PYTHON=python3.12" >&2
    exit 1
}
[ ! -x .venv/bin/python ] || python=.venv/bin/python
tested=$(echo $(sed -n 's/^ *"Programming Language :: Python :: \(3\.[0-9]*\)",$/\1/p' pyproject.toml))
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case " $tested " in
*" $version "*) ;;
*) echo "make env: $python is Python $version, and tested are $tested; if a package cannot be installed: make clean env PYTHON=python${tested##* }" >&2 ;;
esac
[ -x .venv/bin/python ] || "$python" -m venv .venv || {
    echo "make env: $python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
}
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
    [ -x .venv/bin/uv ] || .venv/bin/python -m pip install --quiet --disable-pip-version-check uv
    uv=.venv/bin/uv
fi
echo "make env: installing requirements.lock into .venv (about 1.3 GB on disk, 460 MB of it Spark; minutes the first time)" >&2
# The lock is whole, and asking for dependencies makes uv build Spark anew for every clone and keep 2 GB of each build.
"$uv" pip install --quiet --python .venv/bin/python --no-deps --require-hashes -r requirements.lock
"$uv" pip check --quiet --python .venv/bin/python
# The build backend is itself in the lock, so this step fetches nothing.
"$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
# Spark hands its workers PySpark as a zip, which Python compiles anew at every start: three times the processor time, where a stream's
# worker has ten seconds to answer, however busy the machine is. They are to import the same files from beside it.
for packages in .venv/lib/python*/site-packages; do
    [ ! -d "$packages" ] || echo 'import sys; sys.path[:] = [p for p in sys.path if not p.endswith(("/pyspark.zip", "-src.zip"))]' >"$packages/pyspark_unzipped.pth"
done
touch .venv/.complete
install="apt-get install"
[ "$(uname)" != Darwin ] || install="brew install"
command -v promtool >/dev/null ||
    echo "make env: no promtool is installed, so the tests of the alerts are skipped: $install prometheus" >&2
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    echo "make env: no Chromium is installed, so the tests of the report's page are skipped: $install chromium" >&2
