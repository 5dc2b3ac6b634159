"""What requests for configs become on their way to the cluster and back: Kafka sees no min.insync.racks, and its value is kept."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestData,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponseData,
    DescribeConfigsRequestData,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseData,
)
from tests.gateway.handlers.test_admin_rules import KEY, REFUSED, Cluster, FullStore, KeptStore, handled

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND = 0, 1, 2
ID = UUID(int=7)
"""Of every topic of the cluster."""

TOO_MANY = (
    "min.insync.racks 9: the cluster has 3 racks, so that no produce could be acknowledged; set a lower value, or add racks "
    "first"
)
NO_LIST = "Can't append to or subtract from key min.insync.racks: it is no list"
TWICE = "Error due to duplicate config keys: min.insync.racks"

Configs = list[tuple[str, str | None]]
Resource = tuple[int, str]


def incremental(*resources: tuple[int, str, list[tuple[str, int, str | None]]], only: bool = False) -> Any:
    return IncrementalAlterConfigsRequestData(
        resources=[
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
        validate_only=only,
    )


def replacing(*resources: tuple[int, str, Configs], only: bool = False) -> Any:
    return AlterConfigsRequestData(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs],
            )
            for kind, name, configs in resources
        ],
        validate_only=only,
    )


def accepted(*resources: Resource, error: int = 0) -> IncrementalAlterConfigsResponseData:
    return IncrementalAlterConfigsResponseData(
        responses=[
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                error_code=error, resource_type=kind, resource_name=name
            )
            for kind, name in resources
        ]
    )


def replaced(*resources: Resource) -> AlterConfigsResponseData:
    return AlterConfigsResponseData(
        responses=[AlterConfigsResourceResponse(resource_type=kind, resource_name=name) for kind, name in resources]
    )


def sent(session: Any) -> list[tuple[int, str, list[str]]]:
    """Each resource with the names of its configs, as the one request to the cluster had them."""
    ((_, _, client_id, body),) = session.sent
    assert client_id == "shop"
    return [(one.resource_type, one.resource_name, [config.name for config in one.configs]) for one in body.resources]


def outcomes(response: Any) -> list[tuple[int, str, int, str | None]]:
    return [(one.resource_type, one.resource_name, one.error_code, one.error_message) for one in response.responses]


@pytest.mark.parametrize("first", [True, False])
def test_a_resource_that_is_named_twice_is_refused_as_by_kafka(first: bool) -> None:
    """One of two was accepted, and the refusal of the other one kept its value from being written."""
    store = KeptStore()
    value: str | None = "2"
    operations = (SET, APPEND) if first else (APPEND, SET)
    body = incremental(
        *((TOPIC, "orders", [(KEY, operation, value)]) for operation in operations), (TOPIC, "bare", [(KEY, SET, "3")])
    )
    response, session = handled(body, accepted((TOPIC, "bare")), store=store)
    assert sent(session) == [(TOPIC, "bare", [])]
    assert outcomes(response) == [
        (TOPIC, "bare", 0, None),
        *[(TOPIC, "orders", 42, "Each resource must appear at most once.")] * 2,
    ]
    assert len(store.written) == 1


def test_min_insync_racks_is_taken_out_of_what_is_altered_and_kept_once_that_is_accepted() -> None:
    store, policies = KeptStore(), Policies(FilePolicies())
    body = incremental(
        (TOPIC, "orders", [(KEY, SET, "2"), ("min.insync.replicas", SET, "2")]),
        (TOPIC, "bare", [(KEY, SET, "3")]),
        (TOPIC, "gone", [(KEY, SET, "2")]),
        (BROKER, "1", [(KEY, SET, "2")]),
        (GROUP, "g", [(KEY, SET, "2")]),
        (TOPIC, "configs", [("retention.ms", SET, "5")]),
        (TOPIC, "many", [(KEY, SET, "9"), ("retention.ms", SET, "5")]),
        (TOPIC, "listed", [(KEY, APPEND, "2")]),
        (TOPIC, "twice", [(KEY, SET, "2"), (KEY, SET, "3")]),
    )
    result = accepted((TOPIC, "orders"), (TOPIC, "bare"), (BROKER, "1"), (GROUP, "g"))
    result.responses = [*result.responses, *accepted((TOPIC, "gone"), error=3).responses]
    response, session = handled(body, result, store=store, policies=policies)
    assert sent(session) == [
        (TOPIC, "orders", ["min.insync.replicas"]),
        (TOPIC, "bare", []),
        (TOPIC, "gone", []),
        (BROKER, "1", []),
        # Of what has no such config Kafka decides.
        (GROUP, "g", [KEY]),
    ]
    assert outcomes(response) == [
        (TOPIC, "orders", 0, None),
        (TOPIC, "bare", 0, None),
        (BROKER, "1", 0, None),
        (GROUP, "g", 0, None),
        (TOPIC, "gone", 3, None),
        (TOPIC, "configs", 29, REFUSED),
        (TOPIC, "many", 40, TOO_MANY),
        (TOPIC, "listed", 40, NO_LIST),
        (TOPIC, "twice", 42, TWICE),
    ]
    assert store.written == [
        (*record(Scope.TOPIC, "orders", Entry(2, ID)), 2),
        (*record(Scope.TOPIC, "bare", Entry(3, ID)), 3),
        (*record(Scope.BROKER, "1", Entry(2)), 2),
    ]
    assert policies.min_insync_replicas == {"orders": 2}


REPLICAS = "min.insync.replicas"


@pytest.mark.parametrize(
    ("operation", "error", "known"),
    [(SET, 0, {"orders": 2}), (SET, 29, {}), (SET, 40, {}), (DELETE, 0, {}), (APPEND, 0, {})],
)
def test_a_topics_min_insync_replicas_counts_at_once_if_the_cluster_has_accepted_it(
    operation: int, error: int, known: dict[str, int]
) -> None:
    """Else a client without the right could have the records of others refused until it is read again."""
    policies = Policies(FilePolicies())
    body = incremental((TOPIC, "orders", [(REPLICAS, operation, "2")]), (TOPIC, "pay", []))
    result = accepted((TOPIC, "pay"))
    result.responses = [*result.responses, *accepted((TOPIC, "orders"), error=error).responses]
    handled(body, result, store=KeptStore(), policies=policies)
    assert policies.min_insync_replicas == known


def test_a_topics_min_insync_replicas_counts_though_its_min_insync_racks_could_not_be_kept() -> None:
    policies = Policies(FilePolicies())
    body = incremental((TOPIC, "orders", [(KEY, SET, "2"), (REPLICAS, SET, "2")]))
    handled(body, accepted((TOPIC, "orders")), store=FullStore(), policies=policies)
    assert policies.min_insync_replicas == {"orders": 2}


def test_what_is_altered_only_to_be_validated_is_not_kept() -> None:
    store, policies = KeptStore(), Policies(FilePolicies())
    configs: list[tuple[str, int, str | None]] = [(KEY, SET, "2"), ("min.insync.replicas", SET, "2")]
    response, session = handled(
        incremental((TOPIC, "orders", configs), only=True), accepted((TOPIC, "orders")), store=store, policies=policies
    )
    assert (sent(session), outcomes(response)) == (
        [(TOPIC, "orders", ["min.insync.replicas"])],
        [(TOPIC, "orders", 0, None)],
    )
    handled(
        replacing((TOPIC, "orders", [(KEY, "2")]), only=True),
        replaced((TOPIC, "orders")),
        store=store,
        policies=policies,
    )
    assert (store.written, policies.min_insync_replicas) == ([], {})


@pytest.mark.parametrize(
    "body",
    [
        incremental((TOPIC, "orders", [(KEY, SET, "9")]), (TOPIC, "configs", [])),
        replacing((TOPIC, "orders", [(KEY, "9")]), (TOPIC, "configs", [])),
    ],
)
def test_what_is_refused_whole_does_not_reach_the_cluster(body: Any) -> None:
    response, session = handled(body, store=KeptStore())
    assert outcomes(response) == [(TOPIC, "orders", 40, TOO_MANY), (TOPIC, "configs", 29, REFUSED)]
    assert session.sent == []


def test_a_value_that_cannot_be_kept_is_an_error_of_its_resource() -> None:
    message = "min.insync.racks may not be kept, the request's other configs were altered: no leader"
    for body, result in (
        (incremental((TOPIC, "orders", [(KEY, SET, "2")])), accepted((TOPIC, "orders"))),
        (replacing((TOPIC, "orders", [(KEY, "2")])), replaced((TOPIC, "orders"))),
    ):
        response, _ = handled(body, result, store=FullStore())
        assert outcomes(response) == [(TOPIC, "orders", -1, message)]


def test_where_all_configs_are_replaced_the_value_is_only_if_it_is_named() -> None:
    """A request that does not name it keeps it: an old tool that alters retention.ms must not take the guard off."""
    store, policies, cluster = KeptStore(), Policies(FilePolicies()), Cluster()
    for scope, name in ((Scope.TOPIC, "orders"), (Scope.TOPIC, "lowered"), (Scope.BROKER, "1")):
        policies.replay(*record(scope, name, Entry(2)))
    body = replacing(
        (TOPIC, "orders", [("retention.ms", "5")]),
        (TOPIC, "bare", []),
        (TOPIC, "pay", [(KEY, "3"), ("retention.ms", "5")]),
        (TOPIC, "lowered", [(KEY, "1")]),
        (BROKER, "1", []),
        (GROUP, "2", [(KEY, "2")]),
    )
    names = ((TOPIC, "orders"), (TOPIC, "bare"), (TOPIC, "pay"), (TOPIC, "lowered"), (BROKER, "1"), (GROUP, "2"))
    response, session = handled(body, replaced(*names), store=store, policies=policies, cluster=cluster)
    assert sent(session) == [
        (TOPIC, "orders", ["retention.ms"]),
        (TOPIC, "bare", []),
        (TOPIC, "pay", ["retention.ms"]),
        (TOPIC, "lowered", []),
        (BROKER, "1", []),
        (GROUP, "2", [KEY]),
    ]
    assert outcomes(response) == [(*name, 0, None) for name in names]
    assert [(key, value) for key, value, _ in store.written] == [
        record(Scope.TOPIC, "pay", Entry(3, ID)),
        record(Scope.TOPIC, "lowered", Entry(1, ID)),
    ]
    assert (cluster.requests, policies.lowered) == (2, 1), "the ids of topics whose value is named"


RETENTION = ("retention.ms", SET, "5")
Change = tuple[bool, int, str, str | None]
"""Whether all configs are replaced, the kind and the name of the resource, and the value that is named, "" for DELETE."""


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.sampled_from((TOPIC, BROKER)),
            st.sampled_from(("1", "2", "")),
            st.sampled_from((None, None, "1", "2", "3", "")),
        ),
        max_size=12,
    )
)
def test_a_value_changes_only_where_a_request_names_it_and_every_lowering_is_counted(changes: list[Change]) -> None:
    """Against a dictionary: no sequence of requests changes what it does not name."""
    store, policies = KeptStore(), Policies(FilePolicies())
    values: dict[Resource, int] = {}
    lowered = 0
    for replaces, kind, name, named in changes:
        if kind == TOPIC and not name:
            continue
        body: Any
        result: Any
        if replaces:
            configs: Configs = [("retention.ms", "5")] if not named else [(KEY, named), ("retention.ms", "5")]
            body, result = replacing((kind, name, configs)), replaced((kind, name))
        else:
            own = [] if named is None else [(KEY, SET, named)] if named else [(KEY, DELETE, None)]
            body, result = incremental((kind, name, [*own, RETENTION])), accepted((kind, name))
        before = dict(values)
        refused = not replaces and named == "" and (kind, name) not in values
        if not refused and named == "" and not replaces:
            del values[kind, name]
        elif named:
            values[kind, name] = int(named)
        response, _ = handled(body, result, store=store, policies=policies)
        assert [one.error_code for one in response.responses] == [40 if refused else 0]
        lowered += any(
            after < earlier
            for after, earlier in zip(_in_force(values, kind, name), _in_force(before, kind, name), strict=True)
        )
        for key, value, _ in store.written:
            policies.replay(key, value)
        store.written.clear()
        kept = {
            (TOPIC if scope is Scope.TOPIC else BROKER, of): entry.value
            for (scope, of), entry in policies.entries.items()
        }
        assert (kept, policies.lowered) == (values, lowered)


def _in_force(values: dict[Resource, int], kind: int, name: str) -> list[int]:
    """The value of a broker, or of a topic on brokers 1, 2 and another: its own, else the broker's, else the default."""
    leaders = ["1", "2", "3"] if kind == TOPIC else [name or "3"]
    of_leaders = [values.get((BROKER, leader), values.get((BROKER, ""), 1)) for leader in leaders]
    return of_leaders if kind == BROKER else [values.get((kind, name), value) for value in of_leaders]


def test_a_lowering_whose_write_fails_may_have_been_committed_and_is_not_silent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policies = Policies(FilePolicies())
    policies.replay(*record(Scope.TOPIC, "orders", Entry(3)))
    for value, lowered in (("3", 0), ("2", 1)):
        body = incremental((TOPIC, "orders", [(KEY, SET, value)]))
        handled(body, accepted((TOPIC, "orders")), store=FullStore(), policies=policies)
        assert policies.lowered == lowered
    (line,) = [line for line in caplog.messages if "lowered" in line]
    assert line.startswith("topic orders: min.insync.racks may be lowered from 3 to 2, so that")


@pytest.mark.parametrize(("synonyms", "documentation"), [(False, False), (True, False), (False, True)])
def test_the_value_is_described_to_those_who_request_it_as_they_request_it(synonyms: bool, documentation: bool) -> None:
    policies = Policies(FilePolicies())
    policies.replay(*record(Scope.TOPIC, "orders", Entry(2, ID)))
    requested: dict[Resource, list[str] | None] = {
        (TOPIC, "orders"): None,
        (TOPIC, "other"): ["retention.ms"],
        (BROKER, "orders"): [KEY],
    }
    body = DescribeConfigsRequestData(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for (kind, name), keys in requested.items()
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    retention = DescribeConfigsResourceResult(name="retention.ms", value="5")
    described = DescribeConfigsResponseData(
        results=[
            DescribeConfigsResult(resource_type=kind, resource_name=name, configs=[retention])
            for kind, name in requested
        ]
    )
    response, session = handled(body, described, store=KeptStore(), policies=policies)
    ((key, version, client_id, forwarded),) = session.sent
    assert (key, version, client_id, forwarded) == (ApiKey.DESCRIBE_CONFIGS, 4, "shop", body)
    assert [[(config.name, config.value) for config in result.configs] for result in response.results] == [
        [("retention.ms", "5"), (KEY, "2")],
        [("retention.ms", "5")],
        [("retention.ms", "5"), (KEY, "1")],
    ]
    own = response.results[0].configs[1]
    chain = [(KEY, "2", 1), (KEY, "1", 5)] if synonyms else []
    assert [(one.name, one.value, one.source) for one in own.synonyms] == chain
    assert (own.documentation is not None) is documentation
