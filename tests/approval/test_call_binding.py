"""Binding of calls: the shown arguments are the ones that run, and calls that cannot be shown are refused."""

from __future__ import annotations

import asyncio
import enum
import functools
from typing import Any

import pytest

from tests.approval.person import edit, person
from yourturn.approval.decorator import requires_approval
from yourturn.core.errors import Invalid, Usage

# --- kinds of parameters ---------------------------------------------------------------------------------------------


def calls(desk):
    ask = requires_approval(desk=desk)

    class Shop:
        @ask
        def method(self, amount, fee=1):
            return type(self).__name__, amount, fee

        @classmethod
        @ask
        def of_class(cls, amount):
            return cls.__name__, amount

        @staticmethod
        @ask
        def static(amount):
            return amount

    @ask
    def everything(a, b=2, /, c=3, *d, e, f=6, **g):
        return a, b, c, d, e, f, g

    return {
        "method": (lambda: Shop().method(5), {"amount": 5, "fee": 1}, ("Shop", 5, 1)),
        "class": (lambda: Shop.of_class(5), {"amount": 5}, ("Shop", 5)),
        "static": (lambda: Shop.static(amount=5), {"amount": 5}, 5),
        "everything": (
            lambda: everything(1, e=5, a=7),
            {"a": 1, "b": 2, "c": 3, "d": [], "e": 5, "f": 6, "g": {"a": 7}},
            (1, 2, 3, (), 5, 6, {"a": 7}),
        ),
        "more": (
            lambda: everything(1, 2, 3, 4, 5, e=[None], f={"x": 0.5}),
            {"a": 1, "b": 2, "c": 3, "d": [4, 5], "e": [None], "f": {"x": 0.5}, "g": {}},
            (1, 2, 3, (4, 5), [None], {"x": 0.5}, {}),
        ),
        "function called self": (lambda: ask(lambda self: self)("me"), {"self": "me"}, "me"),
    }


@pytest.mark.parametrize("kind", ["method", "class", "static", "everything", "more", "function called self"])
def test_all_kinds_of_parameters(desk, yes, kind):
    call, shown, result = calls(desk)[kind]
    with person(desk, yes) as seen:
        assert call() == result
    assert seen[0]["action"]["arguments"] == shown


class Deployer:
    def __init__(self, to):
        self.to = to

    def deploy(self, version):
        return version, self.to

    async def __call__(self, version):
        return version, self.to


def test_bound_methods_and_callable_objects(desk, yes):
    deployer = Deployer("staging")
    with person(desk, yes, 2) as seen:
        assert requires_approval(desk=desk)(deployer.deploy)("1.2") == ("1.2", "staging")
        assert asyncio.run(requires_approval(desk=desk)(deployer)("1.3")) == ("1.3", "staging")
    assert [q["action"]["tool"] for q in seen] == [f"{__name__}.Deployer.deploy", f"{__name__}.Deployer"]
    assert [q["action"]["arguments"] for q in seen] == [{"version": "1.2"}, {"version": "1.3"}]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_wrong_arguments_raise_before_asking(desk):
    @requires_approval(desk=desk, wait=0)
    def deploy(version):
        raise AssertionError("it ran")

    with pytest.raises(TypeError, match="missing a required argument"):
        deploy()
    assert desk.list() == []


def test_later_changes_of_the_caller_have_no_effect(desk):
    hosts = ["a"]

    @requires_approval(desk=desk)
    def deploy(hosts):
        return hosts

    def act(q):
        hosts.append("production")
        desk.approve(q["id"])

    with person(desk, act):
        assert deploy(hosts) == ["a"]
    assert hosts == ["a", "production"]


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "value, why",
    [
        (object(), "it is of type object"),
        ((1, 2), "it is of type tuple"),
        ({1}, "it is of type set"),
        (b"x", "it is of type bytes"),
        (Colour.RED, "it is of type Colour"),
        ([{"x": [(1,)]}], "it is of type tuple"),
        ({1: 2}, "it has keys that are not text"),
        (float("nan"), "finite"),
        ("\ud800", "UTF-8"),
        ("\x00", "NUL"),
    ],
    ids=["object", "tuple", "set", "bytes", "enum", "inner tuple", "keys", "nan", "surrogate", "nul"],
)
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_values_that_json_cannot_hold_are_refused(desk, value, why):
    @requires_approval(desk=desk, wait=0)
    def deploy(it):
        raise AssertionError("it ran")

    with pytest.raises(Invalid, match=why):
        deploy(value)
    assert desk.list() == []


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_circular_value_is_refused(desk):
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(Invalid, match="nested too deeply"):
        requires_approval(desk=desk, wait=0)(lambda it: it)(circle)


# --- show -------------------------------------------------------------------------------------------------------------


class Wallet:
    def __init__(self, owner, limit):
        self.owner, self.limit = owner, limit


def paying(desk):
    @requires_approval(
        desk=desk,
        show=lambda wallet, amount, note="": {"from": wallet.owner, "limit": wallet.limit, "amount": amount, "note": note},
        text="Pay {amount} from the wallet of {from}?",
    )
    def pay(wallet, amount, note=""):
        return wallet, amount, note

    return pay


def test_show_describes_objects(desk, yes):
    wallet = Wallet("bob", 100)
    with person(desk, yes) as seen:
        assert paying(desk)(wallet, 5) == (wallet, 5, "")
    assert seen[0]["action"]["arguments"] == {"from": "bob", "limit": 100, "amount": 5, "note": ""}
    assert seen[0]["text"] == "Pay 5 from the wallet of bob?"


def test_object_changed_after_approval_is_refused(desk):
    wallet = Wallet("bob", 100)

    def act(q):
        wallet.owner = "eve"
        desk.approve(q["id"])

    with person(desk, act), pytest.raises(Invalid, match="changed since a person saw them"):
        paying(desk)(wallet, 5)


def test_argument_shown_unchanged_can_be_edited(desk):
    wallet = Wallet("bob", 100)
    with person(desk, edit(desk, amount=3)):
        assert paying(desk)(wallet, 5) == (wallet, 3, "")


def test_derived_value_cannot_be_edited(desk):
    with person(desk, edit(desk, limit=1000)), pytest.raises(Invalid, match="limit is only shown"):
        paying(desk)(Wallet("bob", 100), 5)


@pytest.mark.parametrize("shown, why", [("words", "must return a dictionary"), ({"x": object()}, "x is of type object")])
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_show_must_return_json(desk, shown, why):
    with pytest.raises(Invalid, match=why):
        requires_approval(desk=desk, wait=0, show=lambda it: shown)(lambda it: it)(5)
    assert desk.list() == []


# --- unguardable objects -------------------------------------------------------------------------------------------


def pieces():
    yield 1


async def later_pieces():
    yield 1


@pytest.mark.parametrize(
    "function, why",
    [
        (pieces, "it is a generator"),
        (later_pieces, "it is a generator"),
        (Wallet, "cannot guard the class Wallet"),
        (classmethod(pieces), "cannot guard a classmethod"),
        (property(pieces), "cannot guard a property"),
        (functools.partial(sorted, [3]), "cannot guard a partial"),
        (5, "cannot guard 5"),
    ],
    ids=["generator", "async generator", "class", "classmethod", "property", "partial", "number"],
)
def test_unguardable_objects_are_refused(function, why):
    with pytest.raises(Usage, match=why):
        requires_approval(function)
    with pytest.raises(TypeError):
        requires_approval(colour="red")(len)
