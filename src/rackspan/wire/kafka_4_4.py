"""Versions of requests and responses that Kafka 4.4 added and kio lacks, made from kio's classes of the version before.

tests/compat/test_schemas.py compares them with the classes in Kafka's jar (decision 11). When kio has one, its entry goes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from types import GenericAlias
from typing import Any, ClassVar, Final, get_args

from kio.index import load_request_schema, load_response_schema

from rackspan.wire.apis import ApiKey

Member = tuple[str, Any, Any]
"""Name, type and `dataclasses.field` of a member of kio's classes."""

_OWN: Final = ("__type__", "__flexible__", "__api_key__", "__header_schema__")


def _member(name: str, type_: Any, kafka_type: str, **default: Any) -> Member:
    return name, type_, field(metadata={"kafka_type": kafka_type}, **default)


def _next_version(entity: Any, *added: Member, **replaced: Any) -> Any:
    """kio's class in the version after, with the added members at its end, before tagged ones, and other types of members."""
    before = [
        (each.name, replaced.get(each.name, each.type), field(metadata=each.metadata, default=each.default))
        for each in fields(entity)
    ]
    own = {name: getattr(entity, name) for name in _OWN}
    return make_dataclass(
        entity.__name__,
        [*before, *added],
        frozen=True,
        kw_only=True,
        namespace={**own, "__version__": entity.__version__ + 1},
    )


def _api_versions_request() -> Any:
    """KIP-1242: the cluster and the broker that the client takes the other side for."""
    return _next_version(
        load_request_schema(ApiKey.API_VERSIONS, 4),
        _member("cluster_id", str | None, "string", default=None),
        _member("node_id", int, "int32", default=-1),
    )


def _api_versions_response() -> Any:
    return _next_version(load_response_schema(ApiKey.API_VERSIONS, 4))


def _delete_groups_request() -> Any:
    return _next_version(load_request_schema(ApiKey.DELETE_GROUPS, 2))


def _delete_groups_response() -> Any:
    """KIP-1331: a message for each group."""
    entity = load_response_schema(ApiKey.DELETE_GROUPS, 2)
    result = _next_version(_item(entity, "results"), _member("error_message", str | None, "string", default=None))
    return _next_version(entity, results=GenericAlias(tuple, (result, ...)))


@dataclass(frozen=True, kw_only=True)
class _DescribedTopology:
    """The base of the structs of a topology description (KIP-1331)."""

    __flexible__: ClassVar = True
    __version__: ClassVar = 1


@dataclass(frozen=True, kw_only=True)
class TopologyDescriptionNode(_DescribedTopology):
    """A source, processor or sink."""

    name: str = field(metadata={"kafka_type": "string"})
    node_type: int = field(metadata={"kafka_type": "int8"})
    source_topics: tuple[str, ...] = field(metadata={"kafka_type": "string"}, default=())
    sink_topic: str | None = field(metadata={"kafka_type": "string"}, default=None)
    stores: tuple[str, ...] = field(metadata={"kafka_type": "string"}, default=())
    successors: tuple[str, ...] = field(metadata={"kafka_type": "string"}, default=())


@dataclass(frozen=True, kw_only=True)
class TopologyDescriptionSubtopology(_DescribedTopology):
    """A subtopology with its nodes."""

    subtopology_id: str = field(metadata={"kafka_type": "string"})
    nodes: tuple[TopologyDescriptionNode, ...]


@dataclass(frozen=True, kw_only=True)
class TopologyDescriptionGlobalStore(_DescribedTopology):
    """A global store's source and the processor that fills it."""

    source: TopologyDescriptionNode
    processor: TopologyDescriptionNode


@dataclass(frozen=True, kw_only=True)
class TopologyDescription(_DescribedTopology):
    """The topology that a client of the group described to the broker."""

    subtopologies: tuple[TopologyDescriptionSubtopology, ...]
    global_stores: tuple[TopologyDescriptionGlobalStore, ...]


def _streams_group_describe_request() -> Any:
    return _next_version(
        load_request_schema(ApiKey.STREAMS_GROUP_DESCRIBE, 0), _member("include_topology_description", bool, "bool")
    )


def _streams_group_describe_response() -> Any:
    """KIP-1331 and KIP-1357: the topology that a client described, and the assignor."""
    entity = load_response_schema(ApiKey.STREAMS_GROUP_DESCRIBE, 0)
    group = _next_version(
        _item(entity, "groups"),
        ("topology_description", TopologyDescription | None, field(default=None)),
        _member("topology_description_status", int, "int8", default=0),
        _member("assignor_name", str | None, "string", default=None),
    )
    return _next_version(entity, groups=GenericAlias(tuple, (group, ...)))


def _item(entity: Any, name: str) -> Any:
    """The class of an array's items."""
    return get_args(next(each.type for each in fields(entity) if each.name == name))[0]


REQUESTS: Final[Mapping[tuple[int, int], Callable[[], Any]]] = {
    (ApiKey.API_VERSIONS, 5): _api_versions_request,
    (ApiKey.DELETE_GROUPS, 3): _delete_groups_request,
    (ApiKey.STREAMS_GROUP_DESCRIBE, 1): _streams_group_describe_request,
}
"""By API key and version."""

RESPONSES: Final[Mapping[tuple[int, int], Callable[[], Any]]] = {
    (ApiKey.API_VERSIONS, 5): _api_versions_response,
    (ApiKey.DELETE_GROUPS, 3): _delete_groups_response,
    (ApiKey.STREAMS_GROUP_DESCRIBE, 1): _streams_group_describe_response,
}
