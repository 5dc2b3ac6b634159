"""A local S3 server (moto) as a process of its own, with one bucket, and the variables of a user who may write there.

In a process of its own, since delta-rs waits for its requests without giving other Python threads a turn.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from rackspan import ivy
from rackspan.java import find_java
from tests.pipeline.spark.standalone import end, free_port
from tests.waiting import WITHIN_SECONDS

BUCKET = "fleet"
KEY_ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"

HADOOP_AWS = """\
    <dependency org="org.apache.hadoop" name="hadoop-aws" rev="{hadoop}" conf="default->master"/>
    <dependency org="software.amazon.awssdk" name="s3" rev="2.35.4" conf="default->default"/>
    <dependency org="software.amazon.awssdk" name="s3-transfer-manager" rev="2.35.4" conf="default->default"/>
    <dependency org="software.amazon.awssdk" name="sts" rev="2.35.4" conf="default->default"/>
    <dependency org="software.amazon.s3.analyticsaccelerator" name="analyticsaccelerator-s3" rev="1.3.1" conf="default->master"/>
    <exclude org="org.slf4j" matcher="exact"/>"""
"""hadoop-aws itself requires the bundle of every AWS service, some 600 MB; these parts of it are 16 MB."""


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Start the server. Gives the environment variables that delta-rs and Hadoop find it by."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", url.rpartition(":")[2]]
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until = time.monotonic() + WITHIN_SECONDS
            while not created(f"{url}/{BUCKET}"):
                assert time.monotonic() < until, (folder / "s3.log").read_text()
                time.sleep(0.1)
            yield {
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": KEY_ID,
                "AWS_SECRET_ACCESS_KEY": SECRET,
            }
        finally:
            end([server])


def created(bucket: str) -> bool:
    signed = f"AWS4-HMAC-SHA256 Credential={KEY_ID}/20261122/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    address = bucket.removeprefix("http://").partition("/")
    connection = HTTPConnection(address[0], timeout=WITHIN_SECONDS)
    try:
        connection.request("PUT", f"/{address[2]}", headers={"Authorization": signed})
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def hadoop_aws_jars() -> list[Path]:
    """Hadoop's connector for S3, of the version that pyspark has; fetched once, as Delta's jars are."""
    import pyspark

    (client,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    hadoop = client.stem.removeprefix("hadoop-client-api-")
    home = ivy.cache_folder("hadoop-aws") / hadoop
    if not list(home.glob("*.jar")):
        scratch = home.with_name(f"{home.name}.{os.getpid()}")
        scratch.mkdir(parents=True)
        download = ivy.Download("hadoop-aws", HADOOP_AWS.format(hadoop=hadoop), seconds=300)
        ivy.fetch(download, find_java(), ivy.ivy_jar("hadoop-aws"), scratch / "work", scratch / "lib")
        (scratch / "lib").rename(home)
    return sorted(home.glob("*.jar"))
