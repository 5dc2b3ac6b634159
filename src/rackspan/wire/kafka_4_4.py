"""Versions of requests and responses that Kafka 4.4 added and kio lacks, made from kio's classes of the version before.

tests/compat/test_schemas.py compares them with the classes in Kafka's jar (decision 11). When kio has one, its entry goes.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, fields, make_dataclass
from types import GenericAlias
from typing import Any, Final, get_args

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
    return _next_version(entity, results=_array(result))


def _topology_description() -> Any:
    """KIP-1331: the topology that a client of the group described to the broker, with the nodes of its sub-topologies."""
    node = _struct(
        "TopologyDescriptionNode",
        _member("name", str, "string"),
        _member("node_type", int, "int8"),
        _member("source_topics", tuple[str, ...], "string", default=()),
        _member("sink_topic", str | None, "string", default=None),
        _member("stores", tuple[str, ...], "string", default=()),
        _member("successors", tuple[str, ...], "string", default=()),
    )
    subtopology = _struct(
        "TopologyDescriptionSubtopology", _member("subtopology_id", str, "string"), ("nodes", _array(node), field())
    )
    store = _struct("TopologyDescriptionGlobalStore", ("source", node, field()), ("processor", node, field()))
    return _struct(
        "TopologyDescription",
        ("subtopologies", _array(subtopology), field()),
        ("global_stores", _array(store), field()),
    )


def _struct(name: str, *members: Member) -> Any:
    return make_dataclass(name, members, frozen=True, kw_only=True, namespace={"__version__": 1, "__flexible__": True})


def _array(item: Any) -> GenericAlias:
    return GenericAlias(tuple, (item, ...))


def _streams_group_describe_request() -> Any:
    return _next_version(
        load_request_schema(ApiKey.STREAMS_GROUP_DESCRIBE, 0), _member("include_topology_description", bool, "bool")
    )


def _streams_group_describe_response() -> Any:
    """KIP-1331 and KIP-1357: the topology that a client described, and the assignor."""
    entity = load_response_schema(ApiKey.STREAMS_GROUP_DESCRIBE, 0)
    group = _next_version(
        _item(entity, "groups"),
        ("topology_description", _topology_description() | None, field(default=None)),
        _member("topology_description_status", int, "int8", default=0),
        _member("assignor_name", str | None, "string", default=None),
    )
    return _next_version(entity, groups=_array(group))


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
