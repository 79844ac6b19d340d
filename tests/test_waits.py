"""How long servers ask to wait."""

import pytest

from karat.waits import retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (None, None),
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 -0000"}, 0.0),  # a date without a time zone
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, None),
    ],
)
def test_seconds_are_read_from_numbers_and_dates(headers, seconds):
    assert retry_after(headers) == seconds
