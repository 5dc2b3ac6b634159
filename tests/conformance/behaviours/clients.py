"""What Kafka keeps of users and clients: SCRAM credentials and quotas. Users have names of their own; nobody logs in."""

from typing import Any, Final, TypeAlias

from tests.conformance.behaviour import Outcome, behaviour
from tests.conformance.subject import Subject, fresh
from tests.conformance.wire import Body

SHA_256, SHA_512 = 1, 2
EXACT, DEFAULT, SPECIFIED = range(3)
PASSWORD: Final = b"p" * 32

Upsertion: TypeAlias = tuple[str, int, int]
"""User, mechanism, iterations."""


def altered_users(subject: Subject, *upserted: Upsertion, deleted: tuple[tuple[str, int], ...] = (), password: bytes = PASSWORD) -> list[int]:  # fmt: skip
    """The error codes, in the order of the users' names."""
    results = subject.request(
        "AlterUserScramCredentials",
        0,
        deletions=[{"name": user, "mechanism": mechanism} for user, mechanism in deleted],
        upsertions=[
            {
                "name": user,
                "mechanism": mechanism,
                "iterations": iterations,
                "salt": b"salt",
                "salted_password": password,
            }
            for user, mechanism, iterations in upserted
        ],
    )["results"]
    subject.settle()
    return [one["error_code"] for one in sorted(results, key=lambda one: str(one["user"]))]


def described_users(subject: Subject, *users: str) -> list[Any]:
    """By user in the order of the names: error code, and [mechanism, iterations] of each credential."""
    response = subject.request("DescribeUserScramCredentials", 0, users=[{"name": user} for user in users] or None)
    found = []
    for one in sorted(response["results"], key=lambda one: str(one["user"])):
        credentials = sorted([info["mechanism"], info["iterations"]] for info in one["credential_infos"])
        found.append([one["error_code"], credentials])
    return found


@behaviour("clients")
def a_credential_is_added_replaced_and_deleted(subject: Subject) -> Outcome:
    user = fresh("user")
    observed: list[Any] = [described_users(subject, user)]
    for iterations in (4096, 8192):
        observed.append([altered_users(subject, (user, SHA_256, iterations)), described_users(subject, user)])
    observed.append([altered_users(subject, deleted=((user, SHA_256),)), described_users(subject, user)])
    return observed


@behaviour("clients")
def a_user_has_a_credential_of_each_mechanism(subject: Subject) -> Outcome:
    user = fresh("user")
    codes = [altered_users(subject, (user, mechanism, 5000 + mechanism)) for mechanism in (SHA_256, SHA_512)]
    return [codes, described_users(subject, user), altered_users(subject, deleted=((user, SHA_512),)), described_users(subject, user)]  # fmt: skip


@behaviour("clients")
def iterations_have_limits(subject: Subject) -> Outcome:
    return [altered_users(subject, (fresh("user"), SHA_256, count)) for count in (4095, 4096, 16384, 16385)]


@behaviour("clients")
def a_credential_without_name_mechanism_or_password_is_refused(subject: Subject) -> Outcome:
    user = fresh("user")
    return [
        altered_users(subject, ("", SHA_256, 4096)),
        altered_users(subject, (user, 0, 4096)),
        altered_users(subject, (user, 3, 4096)),
        altered_users(subject, (user, SHA_256, 4096), password=b""),
        altered_users(subject, deleted=((user, 9),)),
        described_users(subject, user),
    ]


@behaviour("clients")
def a_user_is_altered_once_a_request(subject: Subject) -> Outcome:
    twice, other, gone = (fresh(kind) for kind in ("a", "b", "c"))
    codes = altered_users(subject, (twice, SHA_256, 4096), (twice, SHA_512, 4096), (other, SHA_256, 4096))
    both = altered_users(subject, (other, SHA_256, 5000), deleted=((other, SHA_256),))
    # The first error of a user is the one that is returned.
    missing = altered_users(subject, (gone, SHA_256, 4096), deleted=((gone, SHA_256),))
    return [codes, both, missing, described_users(subject, twice, other, gone)]


@behaviour("clients")
def a_credential_that_is_not_there_is_neither_deleted_nor_described(subject: Subject) -> Outcome:
    user = fresh("user")
    return [altered_users(subject, deleted=((user, SHA_256),)), described_users(subject, user)]


@behaviour("clients")
def a_user_is_described_once_a_request(subject: Subject) -> Outcome:
    user, other = fresh("a"), fresh("b")
    altered_users(subject, (user, SHA_256, 4096), (other, SHA_256, 4096))
    return described_users(subject, user, user, other)


Entity: TypeAlias = dict[str, str | None]


def altered_quotas(subject: Subject, entity: Entity, *ops: tuple[str, float | None], validate_only: bool = False) -> list[int]:  # fmt: skip
    entries = [_entry(entity, *ops)]
    response = subject.request("AlterClientQuotas", 1, entries=entries, validate_only=validate_only)
    subject.settle()
    return [one["error_code"] for one in response["entries"]]


def _entry(entity: Entity, *ops: tuple[str, float | None]) -> Body:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
    }


def described_quotas(subject: Subject, *components: tuple[str, int, str | None], strict: bool = False, only: str = "") -> list[Any]:  # fmt: skip
    """[error] or the values of each entity that has `only` in a name, with the types of its names."""
    body = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    response = subject.request("DescribeClientQuotas", 1, components=body, strict=strict)
    if response["error_code"]:
        return [response["error_code"]]
    found = []
    for one in response["entries"]:
        names = {part["entity_type"]: part["entity_name"] for part in one["entity"]}
        if any(only in (name or "") for name in names.values()):
            found.append([sorted(names), sorted([value["key"], value["value"]] for value in one["values"])])
    return sorted(found)


@behaviour("clients")
def a_quota_is_set_changed_and_removed(subject: Subject) -> Outcome:
    user, rate, share = fresh("user"), "producer_byte_rate", "request_percentage"
    observed: list[Any] = []
    for op in ((rate, 1000.0), (share, 12.5), (rate, 2000.0), (rate, None), (share, None)):
        code = altered_quotas(subject, {"user": user}, op)
        observed.append([code, described_quotas(subject, ("user", EXACT, user))])
    return observed


@behaviour("clients")
def quotas_are_validated_and_not_kept_on_request(subject: Subject) -> Outcome:
    user = fresh("user")
    codes = altered_quotas(subject, {"user": user}, ("producer_byte_rate", 5.0), validate_only=True)
    return [codes, described_quotas(subject, ("user", EXACT, user))]


@behaviour("clients")
def a_quota_that_is_none_is_refused(subject: Subject) -> Outcome:
    user = fresh("user")
    tries = (
        ("no.such.key", 1.0), ("producer_byte_rate", -1.0), ("producer_byte_rate", 0.0), ("producer_byte_rate", 1.5),
        ("consumer_byte_rate", 1e30), ("connection_creation_rate", 1.0), ("controller_mutation_rate", 0.5),
        ("request_percentage", 250.5), ("no.such.key", None),
    )  # fmt: skip
    return [altered_quotas(subject, {"user": user}, (key, value)) for key, value in tries]


@behaviour("clients")
def an_entity_that_is_none_is_refused(subject: Subject) -> Outcome:
    op, per_address = ("producer_byte_rate", 1.0), ("connection_creation_rate", 1.0)
    return [
        altered_quotas(subject, {}, op),
        altered_quotas(subject, {"group": "g"}, op),
        altered_quotas(subject, {"user": ""}, op),
        altered_quotas(subject, {"user": "a", "ip": "127.1.1.1"}, per_address),
        altered_quotas(subject, {"ip": "not an address!"}, per_address),
        altered_quotas(subject, {"ip": "127.1.1.1"}, op),
        altered_quotas(subject, {"ip": "127.1.1.1"}, ("connection_creation_rate", 1e10)),
    ]


@behaviour("clients")
def an_entity_is_altered_once_a_request(subject: Subject) -> Outcome:
    user, key = fresh("user"), "producer_byte_rate"
    entries = [_entry({"user": user}, (key, 5.0)), _entry({"user": user}, ("consumer_byte_rate", 5.0))]
    response = subject.request("AlterClientQuotas", 1, entries=entries, validate_only=False)
    subject.settle()
    observed = [[one["error_code"] for one in response["entries"]], described_quotas(subject, ("user", EXACT, user))]
    return [*observed, altered_quotas(subject, {"user": fresh("user")}, (key, 5.0), (key, 6.0))]


@behaviour("clients")
def an_invalid_entity_keeps_no_other_from_its_quota(subject: Subject) -> Outcome:
    user = fresh("user")
    entries = [_entry({"user": user}, ("producer_byte_rate", 5.0)), _entry({"user": ""}, ("producer_byte_rate", 5.0))]
    response = subject.request("AlterClientQuotas", 1, entries=entries, validate_only=False)
    subject.settle()
    return [sorted(one["error_code"] for one in response["entries"]), described_quotas(subject, ("user", EXACT, user))]


@behaviour("clients", alone=True)
def quotas_are_found_by_name_by_default_and_by_type(subject: Subject) -> Outcome:
    user, client, key = fresh("user"), fresh("client"), "consumer_byte_rate"
    entities: list[Entity] = [
        {"user": user},
        {"user": user, "client-id": client},
        {"user": None},
        {"client-id": client},
    ]
    codes = [altered_quotas(subject, entity, (key, 10.0 + index)) for index, entity in enumerate(entities)]
    filters: tuple[tuple[tuple[str, int, str | None], ...], ...] = (
        (("user", EXACT, user),),
        (("user", DEFAULT, None),),
        (("user", EXACT, user), ("client-id", EXACT, client)),
        (("user", EXACT, user), ("client-id", SPECIFIED, None)),
        (("client-id", EXACT, client),),
    )
    found = [[described_quotas(subject, *one, strict=strict) for strict in (False, True)] for one in filters]
    everyone = described_quotas(subject, only=user)
    for entity in entities:
        altered_quotas(subject, entity, (key, None))
    return [codes, found, everyone, described_quotas(subject, only=user)]


@behaviour("clients")
def a_filter_that_is_none_is_refused(subject: Subject) -> Outcome:
    return [
        described_quotas(subject, *one)
        for one in (
            (("", SPECIFIED, None),),
            (("group", SPECIFIED, None),),
            (("user", SPECIFIED, None), ("user", SPECIFIED, None)),
            (("user", SPECIFIED, None), ("ip", SPECIFIED, None)),
            (("user", EXACT, None),),
            (("user", DEFAULT, "a"),),
            (("user", SPECIFIED, "a"),),
            (("user", 9, None),),
        )
    ]
