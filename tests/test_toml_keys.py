import tomllib

from rackspan.toml_keys import dotted_keys


def test_nested_tables_are_kafkas_dotted_keys() -> None:
    table = tomllib.loads('min.insync.racks = 2\nmin.insync.replicas = 1\nplain = "x"\n[a.b]\nc = []\n')
    assert dict(dotted_keys(table)) == {"min.insync.racks": 2, "min.insync.replicas": 1, "plain": "x", "a.b.c": []}
