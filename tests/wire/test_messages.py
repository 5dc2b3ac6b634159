"""The generated classes are those that the generator writes, complete, and named once."""

from collections import Counter

import pytest

from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic
from rackspan.wire.schema import FieldShape, StructShape, request_shape, response_shape
from tools import wire_messages


def test_the_generated_modules_are_what_the_generator_writes() -> None:
    written = {path: path.read_text(encoding="utf-8") for path in wire_messages.FOLDER.glob("*.py")}
    by_hand = {wire_messages.FOLDER / name for name in ("__init__.py", "base.py")}
    assert {path: text for path, text in written.items() if path not in by_hand} == wire_messages.sources(), (
        "run: python tools/wire_messages.py"
    )


def test_every_api_has_versions_and_every_class_its_own_name() -> None:
    assert set(VERSIONS) == set(ApiKey)
    names = Counter(struct.__name__ for struct in _subclasses())
    assert [name for name, count in names.items() if count > 1] == []


def _subclasses() -> list[type[WireStruct]]:
    for key in ApiKey:
        request_shape(key, VERSIONS[key][0])
    return WireStruct.__subclasses__()


@pytest.mark.parametrize("key", ApiKey)
def test_a_class_has_the_fields_of_every_version_and_no_other(key: ApiKey) -> None:
    for shape_of in (request_shape, response_shape):
        found: dict[type[WireStruct], set[str]] = {}
        for version in VERSIONS[key]:
            _collect(shape_of(key, version), found)
        assert {struct: set(struct.DEFAULTS) for struct in found} == found


def _collect(shape: StructShape, found: dict[type[WireStruct], set[str]]) -> None:
    fields: list[FieldShape] = [*shape.fields, *(field for _, field in shape.tagged)]
    found.setdefault(shape.values, set()).update(field.name for field in fields)
    for field in fields:
        if isinstance(field.kind, StructShape):
            _collect(field.kind, found)


def test_values_are_equal_by_class_and_fields_and_show_both() -> None:
    topic = MetadataRequestTopic(name="a")
    assert topic == MetadataRequestTopic(name="a")
    assert topic != MetadataRequestTopic(name="b")
    assert topic != MetadataRequestData()
    assert repr(topic) == "MetadataRequestTopic(topic_id=None, name='a')"


def test_a_struct_has_slots_and_refuses_a_field_that_is_not_declared() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nam'"):
        MetadataRequestTopic(nam="a")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        MetadataRequestTopic().nam = "a"  # type: ignore[attr-defined]
