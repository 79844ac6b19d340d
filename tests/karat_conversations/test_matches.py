"""The matches: vectors, real answers, laws, and a twin in exact fractions."""

import json
import math
from dataclasses import asdict, fields, replace
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat_conversations.numeric import RULES, Matches, match, match_many

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "vectors" / "numeric.json"
MATCHES = [field.name for field in fields(Matches)]
patiently = settings(deadline=None)

short_decimals = st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-2000, max_value=2000)
floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def pairs(draw):
    """A golden decimal and an answer that is often close to a bound of some rule."""
    e = draw(short_decimals)
    factor = draw(st.sampled_from(["1", "1.01", "0.99", "1.0101", "100", "101", "99", "0.01", "0.0101", "-1", "-1.01"]))
    offset = draw(st.sampled_from(["0", "0.001", "-0.001", "0.0009", "0.0011", "0.000005", "0.00001"]))
    return e, draw(short_decimals) if draw(st.booleans()) else e * Decimal(factor) + Decimal(offset)


def _rows():
    if not VECTORS.exists():
        why = pytest.mark.skip(reason="the vectors stand beside the checkout: ../shared/data")
        return [pytest.param(None, marks=why, id="vectors")]
    rows = json.loads(VECTORS.read_text(encoding="utf-8"))
    return [pytest.param(row, id=str(row["args"])) for row in rows if row["function"] == "match5"]


@pytest.mark.parametrize("row", _rows())
def test_the_reference_vector_is_reproduced(row):
    found = asdict(match(*row["args"]))
    assert {key: found[key] for key in row["expected"]} == row["expected"]
    many = match_many(*([value] for value in row["args"]))
    assert {key: many[key].tolist() for key in row["expected"]} == {
        key: [value] for key, value in row["expected"].items()
    }


def test_the_rules_have_a_version():
    assert RULES == "karat-numeric/2"


def _marks(found):
    return {name for name in MATCHES if getattr(found, name) is True}


NUMERICAL = {"numerical", "unit_agnostic", "sign_agnostic", "general", "scale_and_sign", "declared", "right"}
SOFT = {*NUMERICAL, "soft"}
SAME = {*SOFT, "exact", "printed"}
YES = {"general", "exact", "declared", "printed", "right"}


@pytest.mark.parametrize(
    ("expected", "actual", "marks"),
    [
        pytest.param(0.1, 0.101, {*SOFT, "printed"}, id="exactly one percent is inside"),
        pytest.param(0.002, 0.001, set(), id="exactly a thousandth is outside"),
        pytest.param(0, 0.0009, {*NUMERICAL, "printed"}, id="zero is met within a thousandth"),
        pytest.param(0.0, -0.0, SAME, id="zero has no sign"),
        pytest.param(2.5, -2.5, {"sign_agnostic", "scale_and_sign"}, id="the other sign"),
        pytest.param(2.5, -250, {"scale_and_sign"}, id="scale and sign"),
        pytest.param(2.5, 2500, set(), id="a thousand is not forgiven"),
        pytest.param(1e308, -1e308, {"sign_agnostic", "scale_and_sign"}, id="the difference overflows"),
        pytest.param(1e307, 1.7e308, set(), id="a hundred times overflows"),
        pytest.param("0.5%", "0.5", {"general", "unit_agnostic", "scale_and_sign"}, id="the percent sign is missing"),
        pytest.param("1.7e308%", 1e308, set(), id="a percentage whose bare number is far"),
        pytest.param("10%", "10 percentage points", SAME, id="both with percent"),
        pytest.param(10, "0.1 percent", set(), id="both bare and scaled differ"),
        pytest.param("yes", True, YES, id="the same boolean"),
        pytest.param("yes", "no", set(), id="the other boolean"),
        pytest.param("yes", 1, set(), id="a boolean is no number"),
        pytest.param(1, True, set(), id="and no number is a boolean"),
        pytest.param(0.123456, 0.1234569, {*SOFT, "exact"}, id="equal after five decimals, not as printed"),
    ],
)
def test_readable_pairs(expected, actual, marks):
    found = match(expected, actual)
    assert (_marks(found), found.unreadable) == (marks, None)


@pytest.mark.parametrize(
    ("expected", "actual", "marks", "side"),
    [
        (5, "N/A", set(), "actual"),
        (5, None, set(), "actual"),
        ("", 5, set(), "expected"),
        (math.nan, math.inf, set(), "both"),
        ("N/A", " n/a ", {"general"}, "both"),
        ("five  apples", "Five\napples", {"general"}, "both"),
        ("", " ", set(), "both"),
        (None, None, set(), "both"),
    ],
)
def test_an_unreadable_side_is_named_and_only_the_same_text_matches(expected, actual, marks, side):
    found = match(expected, actual)
    assert (_marks(found), found.unreadable) == (marks, side)


@pytest.mark.parametrize(
    ("expected", "actual", "unit", "printed", "right"),
    [
        pytest.param(0.141, "14.1", "percent", "14.1%", True, id="a hundredth of the answer"),
        pytest.param(0.141, "14.1", "%", None, True, id="the unit by its sign"),
        pytest.param(0.141, "14.1", "ratio", "14.1%", False, id="another unit has scale 1"),
        pytest.param(0.141, "14.1", None, "14.1%", False, id="no unit"),
        pytest.param(14.1, "14.1", "percent", "14.1", True, id="printed without the sign: as it stands"),
        pytest.param(14.1, "14.1", "percent", None, True, id="a number is printed without the sign"),
        pytest.param(80.0, "80", "percent", "80%", False, id="printed with the sign: only a hundredth"),
        pytest.param("80%", "0.8", "percent", None, False, id="a hundredth of a hundredth"),
        pytest.param("14.1", "14.1", "percent", None, True, id="the golden text is what was printed"),
        pytest.param("14.1%", "14.1%", "percent", None, True, id="not divided again"),
        pytest.param(0.141, "14.1%", "percent", None, True, id="not divided again, golden number"),
        pytest.param(5e6, "5", "million", None, True, id="million"),
        pytest.param(5e6, "5", "Millions", None, True, id="in any spelling of the parser"),
        pytest.param(5e6, "5 million", "million", None, True, id="its own unit is not scaled again"),
        pytest.param(5, "5", "million", None, True, id="as it stands, where the golden unit is not known"),
        pytest.param(5, "5 million", None, None, True, id="as it stands, with its own unit"),
        pytest.param(12, "12%", None, None, True, id="as it stands, printed without the sign"),
        pytest.param(0.12, "12%", None, "12%", True, id="printed with the sign"),
        pytest.param(50_000_000, "5", "crore", None, True, id="crore"),
        pytest.param(0.0025, "25", "basis points", None, True, id="basis points"),
        pytest.param("yes", "yes", "percent", None, True, id="a boolean has no unit"),
        pytest.param("yes", "no", "percent", None, False, id="nor the other one"),
        pytest.param(5, "five", "percent", None, False, id="unreadable"),
    ],
)
def test_the_declared_unit_is_applied(expected, actual, unit, printed, right):
    assert match(expected, actual, declared_unit=unit, printed=printed).declared is right


@pytest.mark.parametrize(
    ("expected", "golden_unit", "actual", "unit", "right"),
    [
        (1577, "million", "1577", None, True),
        (1577, "million", "1577", "million", True),
        (1577, "in millions", "1577", "USD million", True),
        (1577, "$ million", "$1,577 million", None, True),
        (1577, "millions of dollars", "1.577", "billion", True),
        (1577, "million", "1.577 billion", None, True),
        (1577, "million", "1577000000", "USD", True),
        (1577, "million", "1577000", "thousand", True),
        (1577, "million", "157.7", "crore", True),
        (1577, "million", "1.577 million", None, False),
        (1577, "million", "1.577", "million", False),
        (1577, "million", "1577", "billion", False),
        (1577, "million", "1577", "thousand", False),
        (1577, "$ million", "1577", "EUR million", False),
        (1577, "EUR million", "$1,577", None, False),
        (1577, "USD million", "1577", "dollars, in millions", True),
        ("$5", None, "5", "euros", False),
        ("$5", None, "5", "dollars", True),
        (1577, "USD", "1577", "million", True),
        (14.1, "percent", "14.1", "%", True),
        (14.1, "%", "14.1%", None, True),
        (14.1, "percent", "0.141", "ratio", True),
        ("14.1%", "percent", "14.1", "percent", True),
        (14.1, "percent", "1410", "basis points", True),
        (14.1, "percent", "1410", "percent", False),
        ("1577 million", None, "1577", "million", True),
        (3, "dollars per million", "3", None, True),
        (1577, "m", "1.577", "b", True),
        (1577, "million", "1.577", "milliard", True),
        (0.141, None, "14.1", "pp", True),
        (1577, "A$ million", "1577", "US$ million", False),
        (1577, "CAD million", "1577", "C$ million", True),
    ],
)
def test_naming_the_unit_does_not_make_a_right_answer_wrong(expected, golden_unit, actual, unit, right):
    found = match(expected, actual, declared_unit=unit, golden_unit=golden_unit)
    assert found.declared is right
    many = match_many([expected], [actual], declared_unit=[unit], golden_unit=golden_unit)
    assert many["declared"].tolist() == [right]


@pytest.mark.parametrize(
    ("printed", "actual", "right"),
    [
        pytest.param("14.1%", 0.14136, True, id="a percentage rounds its hundredfold"),
        pytest.param("14.1%", "14.1", False, id="and not the number itself"),
        pytest.param("14.2%", 0.14136, False, id="another percentage"),
        pytest.param("12%", 0.125, True, id="half to even, down"),
        pytest.param("13%", 0.125, False, id="not up"),
        pytest.param("14%", 0.135, True, id="half to even, up"),
        pytest.param("2.68", 2.675, True, id="decided on the decimal, not on its float"),
        pytest.param("2.67", 2.675, False, id="which is below the tie"),
        pytest.param("257", 257.4, True, id="no decimals"),
        pytest.param("257.0", 257.4, False, id="one decimal"),
        pytest.param(257.0, 257.4, True, id="a number in its shortest spelling"),
        pytest.param(0.5, 0.54, True, id="with one decimal"),
        pytest.param("1,234.5", 1234.46, True, id="commas"),
        pytest.param("10.5 million", 10_460_000, True, id="the decimals of a scaled number"),
        pytest.param("1.2e3", 1249, True, id="an exponent's decimals"),
        pytest.param("(5)", -4.6, True, id="a negative in brackets"),
        pytest.param("yes", True, True, id="a boolean"),
        pytest.param("yes", 1, False, id="a boolean is no number"),
        pytest.param("0." + "0" * 2000 + "1", 1e300, False, id="more decimals than there are"),
        pytest.param("0.1000000000000000055", "0.1", True, id="the same float"),
        pytest.param("n/a", 5, False, id="nothing was printed"),
    ],
)
def test_an_answer_prints_as_the_golden_one_was_printed(printed, actual, right):
    assert match(5, actual, printed=printed).printed is right
    assert match_many([5], [actual], printed=[printed])["printed"].tolist() == [right]


@patiently
@given(pairs())
def test_bounds_are_those_of_exact_arithmetic(pair):
    e, a = pair
    x, y = Fraction(e), Fraction(a)

    def near(x, y):
        return abs(y - x) < Fraction(1, 1000) or (x != 0 and abs(y - x) <= abs(x) / 100)

    def units(x, y):
        hundred = x != 0 and (abs(y - 100 * x) <= abs(x) or abs(y - x / 100) <= abs(x) / 10_000)
        return near(x, y) or hundred

    found = match(str(e), str(a))
    assert found.numerical is found.right is near(x, y)
    assert found.soft is (abs(y - x) <= abs(x) / 100)
    assert found.unit_agnostic is units(x, y)
    assert found.sign_agnostic is near(abs(x), abs(y))
    assert found.scale_and_sign is units(abs(x), abs(y))
    assert found.printed is (a.quantize(e, ROUND_HALF_EVEN) == e)
    assert found.exact is (round(float(e), 5) == round(float(a), 5))
    percent = match(f"{e}%", str(a))
    assert percent.general is (near(x, y) or near(x / 100, y))


@patiently
@given(floats, floats)
def test_what_forgives_more_holds_wherever_the_stricter_match_does(e, a):
    found = match(e, a)
    assert found.numerical or not (found.soft or found.exact)
    for wider in (found.unit_agnostic, found.sign_agnostic, found.general, found.right):
        assert wider or not found.numerical
    assert found.scale_and_sign or not (found.unit_agnostic or found.sign_agnostic)
    assert found.general or not found.right


@patiently
@given(floats, floats)
def test_signs_and_scales_obey_their_laws(e, a):
    found = match(e, a)
    assert replace(match(-e, -a), printed=found.printed) == found
    for other in (match(-e, a), match(e, -a)):
        assert other.sign_agnostic is found.sign_agnostic
        assert other.scale_and_sign is found.scale_and_sign
    if 1e-200 < abs(e) < 1e200 and 1e-200 < abs(a) < 1e200:
        assert match(8 * e, 8 * a).soft is found.soft
        for times in (match(e, 100 * a), match(100 * e, a)):
            assert times.unit_agnostic or not found.soft


@patiently
@given(floats, floats)
def test_where_the_rule_is_symmetric_so_is_the_match(e, a):
    one, other = match(e, a), match(a, e)
    assert one.exact is other.exact
    if abs(e) == abs(a) or max(abs(e), abs(a)) <= 0.09:  # below, only the thousandth decides
        assert one.numerical is other.numerical
    assert match(e, "?").unreadable == "actual"
    assert match("?", a).unreadable == "expected"
    assert match(f"{e}%", a).general is (one.general or match(e / 100, a).numerical)


NASTY = ["5", "-5", "(5)", "5%", "12,5", "1,234.5", "$-5", "5 million", "yes", "No", True, False, None, "N/A", "n/a"]
NASTY += ["", "a\nb", "5\n", "1e400", "1e-5", "0.000015", 0.00001, 10**400, 2**70, 1e308, -1e308, math.nan, math.inf]
NASTY += ["123456789012345678", "0.1000000000000000055", "5\u212a", "5k", "1_000", "\u22125", "2.675", 2.68, "12%"]
NASTY += [0.125, 257.0, "257.0", 257.4, 0, -0.0, 0.001, Decimal("1.5"), np.float32(0.1), np.bool_(True), [1], 1.7e308]
NASTY += ["1.7e308%", "10.5 million", 10450000, "0." + "0" * 400 + "1", "9" * 400, "1,,234", "(5%)", "( 5 ) %", "--5"]
nasty = st.sampled_from(NASTY) | floats | st.text(alphabet="0123456789.,-+()$% mkeE") | st.booleans() | st.integers()
nasty |= st.builds(
    lambda x, form: form.format(x),
    st.floats(-1e9, 1e9),
    st.sampled_from(["{:.2f}", "{:,.1f}", "{:.1f}%", "${:,.2f}", "{!r}", "({:.0f})", "{:.3f} million", "{:e}"]),
)


def _same_as_one_by_one(expected, actual, **options):
    many = match_many(expected, actual, **options)
    assert list(many) == MATCHES
    for at, (e, a) in enumerate(zip(expected, actual, strict=True)):
        each = {name: given if isinstance(given, str) else given[at] for name, given in options.items()}
        assert {name: many[name][at] for name in MATCHES} == asdict(match(e, a, **each)), (e, a, each)
    return many


@patiently
@given(
    st.lists(st.tuples(nasty, nasty, st.sampled_from([None, "percent", "million", "bps", "raw"]), st.none() | nasty))
)
def test_many_at_once_are_the_same_as_one_by_one(rows):
    expected, actual, units, printed = ([row[at] for row in rows] for at in range(4))
    _same_as_one_by_one(expected, actual)
    _same_as_one_by_one(expected, actual, declared_unit="percent")
    _same_as_one_by_one(expected, actual, declared_unit=units, printed=printed)
    for golden_unit in ("million", "€", "percent"):
        _same_as_one_by_one(expected, actual, declared_unit=units, golden_unit=golden_unit)


@patiently
@given(st.lists(st.tuples(floats, st.sampled_from([0, 1e-6, 5e-6, 1e-5, 1e-3, 0.01, 0.3, 0.5, 1e4])) | pairs()))
def test_numbers_near_a_bound_are_the_same_as_one_by_one(rows):
    expected, actual = [float(e) for e, _ in rows], [float(e) + float(off) for e, off in rows]
    many = _same_as_one_by_one(expected, actual)
    arrays = match_many(np.array(expected, dtype=np.float64), np.array(actual, dtype=np.float64))
    for name, array in many.items():
        assert array.tolist() == arrays[name].tolist()
        assert array.dtype == (object if name == "unreadable" else bool)


def test_every_kind_of_column_is_read():
    numbers = np.array([1, 0, 3])
    for column in (numbers, numbers.astype(np.float32), numbers.astype(object), numbers.astype(str), (1, 0, 3)):
        assert match_many(column, [1.0, 5, "3%"])["numerical"].tolist() == [True, False, False]
    assert match_many(numbers == 1, ["yes", "no", 0])["right"].tolist() == [True, True, False]
    assert match_many([], [])["numerical"].tolist() == []
    assert match_many(NASTY * 400, NASTY * 400)["soft"].tolist() == [match(x, x).soft for x in NASTY] * 400


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1]), {}, r"must have one length, got \[1, 2\]"),
        (([1], [1]), {"declared_unit": ["%", "%"]}, r"must have one length, got \[1, 2\]"),
        (([1], [1]), {"printed": ["1", "1"]}, "printed: must have the length of expected, 1, got 2"),
        ((np.ones((2, 2)), np.ones((2, 2))), {}, "expected an array with one dimension, got 2"),
        (("12", "12"), {}, "expected a sequence of values, got one text"),
    ],
)
def test_columns_that_do_not_fit_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        match_many(*arguments, **options)


@pytest.fixture(scope="module")
def answers():
    """The real answers of a model to the 1,490 turns, with both golden ones."""
    folder = VECTORS.parents[1] / "convfinqa"
    if not folder.exists():
        pytest.skip("the conversations stand beside the checkout: ../shared/data")
    golden = {each["id"]: each["dialogue"] for each in json.loads((folder / "dev.json").read_text("utf-8"))["dev"]}
    rows = [json.loads(line) for line in (folder / "predictions_sonnet.jsonl").read_text("utf-8").splitlines()]
    at = [(golden[row["record_id"]], row["turn_idx"]) for row in rows]
    return {
        "actual": [row["predicted_answer"] for row in rows],
        "unit": [row["predicted_unit"] for row in rows],
        "executed": [each["executed_answers"][turn] for each, turn in at],
        "printed": [each["conv_answers"][turn] for each, turn in at],
        "verdict": [row["correct"] for row in rows],
    }


def test_the_real_answers_score_what_is_known_of_them(answers):
    columns = {"declared_unit": answers["unit"], "printed": answers["printed"]}
    found = match_many(answers["executed"], answers["actual"], **columns)
    rates = {name: 100 * found[name].mean() for name in MATCHES if name != "unreadable"}
    known = {"numerical": 66.9, "unit_agnostic": 83.8, "sign_agnostic": 68.3, "exact": 59.5, "declared": 83.4}
    assert {name: rates[name] for name in known} == pytest.approx(known, abs=0.1)
    printed = match_many(answers["printed"], answers["actual"])
    assert 100 * printed["numerical"].mean() == pytest.approx(65.6, abs=0.1)
    assert (found["declared"] == answers["verdict"]).mean() > 0.99  # what the file's author meant by correct
    rows = zip(*(answers[name] for name in ("executed", "actual", "unit", "printed")), strict=True)
    for at, (golden, actual, unit, form) in enumerate(rows):
        one = match(golden, actual, declared_unit=unit, printed=form)
        assert asdict(one) == {name: found[name][at] for name in MATCHES}
