"""Authorities and identities made for one test run with the openssl command; nothing of them is kept."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

KEY_PASSWORD = "key-secret"  # noqa: S105 - of files that live as long as the test


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and the certificate that an authority gave it."""

    key: Path
    certificate: Path

    @property
    def store(self) -> Path:
        """Both in one file, as Kafka's PEM keystores are."""
        path = self.key.with_suffix(".store.pem")
        path.write_text(self.key.read_text() + self.certificate.read_text())
        return path

    @property
    def locked_store(self) -> Path:
        """The same with the key under KEY_PASSWORD."""
        path = self.key.with_suffix(".locked.pem")
        locked = openssl("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", self.key, "-passout", f"pass:{KEY_PASSWORD}")
        path.write_text(locked + self.certificate.read_text())
        return path


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority: a client that trusts `certificate` accepts what this one signs."""

    key: Path
    certificate: Path

    def identity(self, name: str, *, subject: str = "", alternative: str = "IP:127.0.0.1", days: int = 2) -> Identity:
        """A new one; `days` may be negative for one whose time is over."""
        folder = self.key.parent
        key, request, certificate = (folder / f"{name}.{suffix}" for suffix in ("key", "csr", "pem"))
        names = ("-subj", f"/CN={subject or name}", "-addext", f"subjectAltName={alternative}")
        openssl("req", "-new", *_NEW_KEY, *names, "-keyout", key, "-out", request)
        signed_by = ("-CA", self.certificate, "-CAkey", self.key)
        copied = ("-days", days, "-copy_extensions", "copy")
        openssl("x509", "-req", "-in", request, *signed_by, *copied, "-out", certificate)
        return Identity(key, certificate)


def authority(folder: Path, name: str) -> Authority:
    folder.mkdir(parents=True, exist_ok=True)
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    openssl("req", "-x509", *_NEW_KEY, "-days", 2, "-subj", f"/CN={name}", "-keyout", key, "-out", certificate)
    return Authority(key, certificate)


_NEW_KEY = ("-newkey", "rsa:2048", "-nodes")


def openssl(*arguments: object) -> str:
    """What it prints. A machine without it cannot test TLS, and says so."""
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: TLS identities, for lack of the openssl command")
    words = ["openssl", *map(str, arguments)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
