"""Plants the fault, or records executed lines, in the Python processes that a test starts.

The folder of this file is on their PYTHONPATH; the variables below say what to do, and without them nothing happens.
"""

import atexit
import os
import sys

FAULT = "MUTATION_FAULT"
"""The file of a fault: the path of the module, and below it the module's text."""

LINES = "MUTATION_LINES"
"""The folder for the data of coverage.py."""

SOURCES = "MUTATION_SOURCES"
"""The folders whose lines are recorded."""

CONTEXT = "MUTATION_CONTEXT"
"""The test that starts the process."""


def plant(fault: str) -> None:
    """Import the fault's text in place of its module; the file `fault`.loaded appears when that happens."""
    from importlib.abc import SourceLoader
    from importlib.machinery import PathFinder

    with open(fault, encoding="utf-8") as file:
        path, _, text = file.read().partition("\n")
    find_spec = PathFinder.find_spec

    class Planted(SourceLoader):
        """Loads the fault's text. No SourceFileLoader: pytest reads the file of such a module again to rewrite its asserts."""

        def get_filename(self, fullname: str) -> str:  # noqa: ARG002 - importlib's signature
            return path

        def get_data(self, path: str | bytes) -> bytes:  # noqa: ARG002 - importlib's signature
            with open(f"{fault}.loaded", "w", encoding="utf-8"):
                return text.encode()

    def planted_spec(_finder: object, fullname: str, *arguments: object) -> object:
        spec = find_spec(fullname, *arguments)  # type: ignore[arg-type] # What importlib passes on.
        if spec is not None and spec.origin == path:
            spec.loader = Planted()
        return spec

    setattr(PathFinder, "find_spec", classmethod(planted_spec))  # noqa: B010 - in this process only


def record_lines(folder: str, sources: list[str], context: str) -> None:
    """Record the lines below the `sources` until the process ends, and save them in `folder`."""
    from coverage import Coverage

    coverage = Coverage(os.path.join(folder, "lines"), True, config_file=False, source=sources, context=context)
    coverage.set_option("run:disable_warnings", ["no-data-collected", "module-not-measured", "module-not-imported"])
    coverage.start()

    def save() -> None:
        coverage.stop()
        coverage.save()

    atexit.register(save)


if __name__ == "sitecustomize":  # The interpreter has imported it.
    if FAULT in os.environ:
        plant(os.environ[FAULT])
    if LINES in os.environ and "coverage" not in sys.modules:
        record_lines(os.environ[LINES], os.environ[SOURCES].split(os.pathsep), os.environ.get(CONTEXT, ""))
