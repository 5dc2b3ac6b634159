"""The jars of Delta Lake for the installed pyspark, in the user's cache folder: complete, or absent.

    <cache>/rackspan/delta/delta-spark_4.2_2.13-4.4.0/*.jar

They are fetched once, by the Ivy inside pyspark with settings and folders of its own, and given to Spark as local files: Spark's
own `spark.jars.packages` would resolve them at each start and print on standard output. What Spark ships already is left out,
13 MB of 86 are left. Without a network copy that folder from a machine that has one, or set `spark.jars` in Spark's own
configuration; docs/how-to/pipeline.md says how.
"""

import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from rackspan import ivy
from rackspan.errors import MissingRequirement
from rackspan.java import Java

DELTA: Final = "4.4.0"
SPARK_VERSIONS: Final = ("4.0", "4.1", "4.2")
"""Those that Delta publishes a build for."""

DEPENDENCIES: Final = """\
    <dependency org="io.delta" name="{name}" rev="{delta}" conf="default->default"/>
    <exclude org="^(?!io\\.delta$|io\\.unitycatalog$).*" matcher="regexp"/>"""
"""Everything of other organisations is part of Spark."""

SECONDS: Final = 600.0

Fetch = Callable[[str, Java, Path], None]


def delta_jars(java: Java, *, cache: Path | None = None, fetch: "Fetch | None" = None) -> list[Path]:
    """The jars, fetched first if necessary (13 MB, about 10 s). Errors: MissingRequirement."""
    name = artifact(version("pyspark"))
    home = (cache or ivy.cache_folder("delta")) / f"{name}-{DELTA}"
    jars = sorted(home.glob("*.jar"))
    if jars:
        return jars
    print(f"fetching Delta Lake {DELTA} for Spark into {home} (13 MB, once)", file=sys.stderr)
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=home.parent) as scratch:
        (fetch or fetch_by_ivy)(name, java, Path(scratch))
        staged = Path(scratch) / "lib"
        broken = [jar.name for jar in staged.glob("*.jar") if not zipfile.is_zipfile(jar)]
        if broken or not list(staged.glob(f"{name}-*.jar")):
            raise MissingRequirement(
                f"Delta Lake {DELTA} came incomplete ({', '.join(broken) or name}); try again, nothing was kept"
            )
        # Where another process was faster, what it fetched is the same.
        with suppress(OSError):
            staged.rename(home)
    return sorted(home.glob("*.jar"))


def artifact(pyspark: str) -> str:
    """The name of Delta's jar for a version of pyspark. Errors: MissingRequirement where Delta has none."""
    minor = ".".join(pyspark.split(".")[:2])
    if minor not in SPARK_VERSIONS:
        raise MissingRequirement(
            f"pyspark {pyspark} is installed, and Delta Lake {DELTA} has no build for it; rackspan pipeline follow and a notebook need "
            f"Delta Lake in Spark: install one of {', '.join(SPARK_VERSIONS)}: pip install 'pyspark>=4.0,<4.3'"
        )
    return f"delta-spark_{minor}_2.13"


def fetch_by_ivy(name: str, java: Java, scratch: Path) -> None:
    """Download the jars to `scratch`/lib. Errors: as of ivy.fetch."""
    download = ivy.Download(
        name=f"Delta Lake {DELTA}",
        dependencies=DEPENDENCIES.format(name=name, delta=DELTA),
        seconds=SECONDS,
        failed=f"without a network copy {ivy.cache_folder('delta')} from a machine that has one",
    )
    ivy.fetch(download, java, ivy.ivy_jar("Delta Lake"), scratch / "work", scratch / "lib")
