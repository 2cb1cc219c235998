"""Values of a state are stored by what is new in them, and come back whole."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from offing.storage.state_serializer import build_serializer
from offing.storage.state_values import EncodedValues, ValueEncoder, ValueRow, ValueRows

SERDE = build_serializer()

PAGE = "x" * 2_000


class Thread:
    """The stored versions of one channel. Every other version is encoded by a claim that has read the one before."""

    def __init__(self) -> None:
        self._encoder, self._rows, self._nth = ValueEncoder(SERDE), list[ValueRow](), 0

    def put(self, value: Any, *, anew: bool = False) -> EncodedValues:
        self._nth += 1
        checkpoint = a_checkpoint(value, self._nth)
        encoded = self._encoder.encode("", checkpoint, incremental=True)
        self._rows += encoded.rows
        if anew:
            self._encoder = ValueEncoder(SERDE)
            self._encoder.cache_versions("", checkpoint["channel_versions"], encoded.references, ValueRows(self._rows))
        return encoded

    def value(self, encoded: EncodedValues) -> Any:
        if "state" in encoded.inline:
            return encoded.inline["state"]
        return ValueRows(self._rows).get_value(SERDE, "state", encoded.references["state"])

    @property
    def stored(self) -> int:
        return sum(len(row.body) for row in self._rows)


def a_checkpoint(value: Any, version: int) -> Checkpoint:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"], checkpoint["channel_versions"] = {"state": value}, {"state": f"{version:08d}"}
    return checkpoint


def message(nth: int) -> BaseMessage:
    return (AIMessage if nth % 2 else HumanMessage)(f"{PAGE} {nth}", id=str(nth))


def test_each_message_of_a_list_that_grows_is_stored_once() -> None:
    thread, messages = Thread(), list[BaseMessage]()
    for nth in range(100):
        messages.append(message(nth))
        assert thread.value(thread.put(list(messages), anew=nth % 7 == 0)) == messages
    assert thread.stored < 100 * 2_500


def test_a_list_that_was_changed_in_its_middle_is_stored_whole() -> None:
    thread, messages = Thread(), [message(nth) for nth in range(10)]
    first = thread.put(messages)
    changed = [*messages[:4], HumanMessage("other", id="4"), *messages[5:], message(10)]
    second = thread.put(changed)
    assert (thread.value(first), thread.value(second)) == (messages, changed)
    assert [row.base_version for row in second.rows] == [None]


def test_a_list_that_was_cut_and_one_of_another_branch_come_back_as_they_were() -> None:
    thread, messages = Thread(), [message(nth) for nth in range(6)]
    first, cut, branch = thread.put(messages), thread.put(messages[:3]), thread.put([*messages[:3], message(9)])
    assert [thread.value(one) for one in (first, cut, branch)] == [messages, messages[:3], [*messages[:3], message(9)]]
    assert branch.rows[0].items == 1


def test_of_a_mapping_only_the_keys_that_changed_are_stored() -> None:
    thread, files = Thread(), {f"{nth}.txt": PAGE for nth in range(20)}
    thread.put(dict(files))
    before = thread.stored
    files["3.txt"] = "short"
    files["new.txt"] = "also short"
    del files["7.txt"]
    second = thread.put(dict(files))
    result = thread.value(second)
    assert result == files
    assert list(result) == list(files)
    assert thread.stored - before < 200


def test_a_file_that_is_written_again_and_again_is_not_read_through_all_of_its_versions() -> None:
    thread = Thread()
    encoded = thread.put({})
    for nth in range(100):
        files = {"notes.txt": f"{PAGE} {nth}", "other.txt": PAGE}
        encoded = thread.put(files, anew=nth % 9 == 0)
        assert thread.value(encoded) == files
    chain = ValueRows(thread._rows).get_chain("state", encoded.references["state"])  # pyright: ignore[reportPrivateUsage]
    assert sum(len(row.body) for row in chain) < 5 * 4_096


def test_a_value_that_is_the_same_in_another_version_is_stored_once() -> None:
    thread = Thread()
    first, second = thread.put([PAGE]), thread.put([PAGE])
    assert second.references == first.references
    assert second.rows == ()


def test_a_snapshot_adds_to_the_one_before_and_comes_back_as_a_snapshot() -> None:
    thread, messages = Thread(), [message(nth) for nth in range(6)]
    first, second = thread.put(DeltaSnapshot(messages[:3])), thread.put(DeltaSnapshot(messages), anew=True)
    assert thread.value(first) == DeltaSnapshot(messages[:3])
    assert thread.value(second) == DeltaSnapshot(messages)
    assert thread.put(messages).rows != (), "a list is not taken for a snapshot of the same items"
    assert second.rows[0].items == 3


def test_a_small_value_stays_with_its_checkpoint() -> None:
    for value in (None, 7, True, "word", [1, 2], {"a": 1}, b"bytes"):
        encoded = Thread().put(value)
        assert (encoded.inline, encoded.rows) == ({"state": value}, ())


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=400) | st.binary(max_size=400),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner, max_size=20),
    max_leaves=30,
)


@given(st.lists(plain, max_size=8), st.booleans())
def test_any_sequence_of_values_comes_back(values: list[Any], anew: bool) -> None:
    thread = Thread()
    encoded = [thread.put(value, anew=anew) for value in values]
    assert [thread.value(one) for one in encoded] == values


@given(st.lists(st.lists(plain, max_size=3), max_size=8))
def test_any_list_that_grows_comes_back(parts: list[list[Any]]) -> None:
    thread, whole = Thread(), list[Any]()
    for part in parts:
        whole = [*whole, *part]
        assert thread.value(thread.put(whole)) == whole


def test_long_lists_have_the_headers_of_msgpack() -> None:
    for count in (15, 16, 65_535, 65_536):
        thread = Thread()
        thread.put([0] * (count - 1))
        assert thread.value(thread.put([0] * count)) == [0] * count
