"""What a checkpoint holds, as JSON and back."""

import json

import pytest

from rackspan.errors import UsageError
from rackspan.kafka_source.stream_offsets import StreamOffsets
from rackspan.model.ids import TopicPartition

A0, B9, B10 = TopicPartition("a", 0), TopicPartition("b", 9), TopicPartition("b", 10)


def test_offsets_are_written_as_sparks_connector_writes_them() -> None:
    offsets = StreamOffsets({B10: 5, A0: 1, B9: 4})
    assert json.dumps(offsets.document()) == '{"a": {"0": 1}, "b": {"9": 4, "10": 5}}'
    assert StreamOffsets.from_document(offsets.document()) == offsets


def test_topic_ids_stand_beside_the_offsets_in_one_order() -> None:
    offsets = StreamOffsets({B10: 5, A0: 1, B9: 4}, {"b": "id-b", "a": "id-a", "gone": "id-g"})
    text = '{"a": {"0": 1, "topicId": "id-a"}, "b": {"9": 4, "10": 5, "topicId": "id-b"}}'
    assert json.dumps(offsets.document()) == text
    turned = StreamOffsets({B9: 4, A0: 1, B10: 5}, {"a": "id-a", "b": "id-b"})
    assert json.dumps(turned.document()) == text
    assert StreamOffsets.from_document(json.loads(text)) == turned


def test_only_an_id_that_is_known_and_differs_is_of_another_topic() -> None:
    before = StreamOffsets({A0: 1, B9: 1}, {"a": "id-1", "b": "id-1"})
    assert StreamOffsets({}, {"a": "id-2", "b": "id-1", "c": "id-3"}).of_another_topic(before) == {
        "a": ("id-1", "id-2")
    }
    assert StreamOffsets({A0: 1}).of_another_topic(before) == {}
    assert before.of_another_topic(StreamOffsets({A0: 1})) == {}


@pytest.mark.parametrize("document", [{"a": 1}, {"a": {"x": 1}}, {"a": {"0": None}}])
def test_a_foreign_checkpoint_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="not those of rackspan-kafka"):
        StreamOffsets.from_document(document)  # type: ignore[arg-type]
