"""What leads to a secret is in no message."""

import pytest

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import create_warehouse
from rackspan.pipeline.delta.credentials import redacted

ENVIRON = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
    "AWS_SESSION_TOKEN": "wJalrXUtnFEMI-and-more",
    "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0",
    "GOOGLE_SERVICE_ACCOUNT": "/home/me/key.json",
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "TOKEN_KIND": "none",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("403 for wJalrXUtnFEMI-and-more, wJalrXUtnFEMI", "403 for (hidden), (hidden)"),
        ("GET https://a/b?sv=1&sig=aB%2Fc%3D&se=2 failed", "GET https://a/b?sv=1&sig=(hidden)&se=2 failed"),
        ("?X-Amz-Credential=AKID%2F1&X-Amz-Signature=00ff", "?X-Amz-Credential=(hidden)&X-Amz-Signature=(hidden)"),
        ("Credential=AKIDEXAMPLE/2026, key c2VjcmV0", "Credential=(hidden)/2026, key (hidden)"),
        ("\x1b[31mnone\x1b[0m of it is a signature of ours", "none of it is a signature of ours"),
    ],
)
def test_secrets_and_signatures_are_hidden_and_other_words_stay(text: str, shown: str) -> None:
    assert redacted(text, ENVIRON) == shown


@pytest.mark.parametrize(
    "url", ["s3://AKID:wJalr@bucket/w", "s3a://AKID@bucket/w", "az://c/w?sv=1&sig=wJalr", "abfss://c:wJalr@a/w"]
)
def test_a_url_with_credentials_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidWarehouse, match=r"URL with credentials in it .* by the environment") as caught:
        create_warehouse(url)
    assert "wJalr" not in str(caught.value)
    assert "AKID" not in str(caught.value)
