"""Who is the user and who the assistant, whatever they are called."""

from __future__ import annotations

import pytest

from karat.documents.chats import has_both_sides, in_place_of_text, sides_of, with_sides


def roles(*speakers, **options):
    """The sides of messages of these speakers."""
    messages = [{"role": name, "content": str(at)} for at, name in enumerate(speakers)]
    found = with_sides(messages, **options)
    assert [message["content"] for message in found] == [message["content"] for message in messages]
    return [message["role"] for message in found]


def test_speakers_become_sides():
    assert roles("Customer", " AGENT ") == ["user", "assistant"]
    assert roles("system", "tool", "user") == ["system", "tool", "user"]
    assert roles("Ann", "Bot", "Ann") == ["user", "assistant", "user"]
    assert roles("human", "Ann") == ["user", "assistant"]
    assert roles("customer", "Ann") == ["user", "Ann"]  # a customer may talk to anybody
    assert roles("Ann", "Ben") == ["Ann", "Ben"]
    assert roles("Ann", "Ben", "bot") == ["Ann", "Ben", "assistant"]


def test_the_assistant_may_be_named():
    assert roles("Ann", "system", "Ben", "Cem", agent=[" BEN "]) == ["user", "system", "assistant", "user"]


def test_a_system_answers_if_nobody_else_does_but_for_a_lone_first_message():
    assert roles("system", "user", "system", system_answers=True) == ["assistant", "user", "assistant"]
    assert roles("system", "user", "user", system_answers=True) == ["system", "user", "user"]
    assert roles("user", "system", system_answers=True) == ["user", "assistant"]
    assert roles("system", "user", "system") == ["system", "user", "system"]
    assert roles("user", "system", "bot", system_answers=True) == ["user", "system", "assistant"]


def test_a_message_without_a_speaker_stays():
    assert with_sides([{"content": "x"}, {"role": "bot", "content": "y"}]) == [
        {"content": "x"},
        {"role": "assistant", "content": "y", "speaker": "bot"},
    ]


def test_sides_of_people():
    assert sides_of(["ann", "bot"]) == {"ann": "user", "bot": "assistant"}
    assert sides_of(["user", "ann"]) == {"user": "user", "ann": "assistant"}
    assert sides_of(["ann"]) == {}
    assert sides_of(["bot"]) == {"bot": "assistant"}
    assert sides_of(["bot", "user"]) == {"bot": "assistant", "user": "user"}


def test_both_sides_speak():
    user, reply = {"role": "user"}, {"role": "assistant"}
    assert has_both_sides([user, reply, {"role": "system"}])
    assert not has_both_sides([user, user])
    assert not has_both_sides([reply])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "image_url"}], "[image]"),
        ([{"content_type": "audio", "type": "x"}], "[audio]"),
        (["text", {"other": 1}], "[attachment]"),
        (["text"], None),
        ([], None),
        ("text", None),
        ({"type": "image"}, None),
    ],
)
def test_what_has_no_text_is_named(content, text):
    assert in_place_of_text(content) == text
