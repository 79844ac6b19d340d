"""Drawing: real pictures, without a network, in two themes that everybody can read."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
import pytest
from tests.document.made_up import conversations

from karat.analysis import Summary, summarize
from karat.blocks import Axis, Chart, Line, Mark, Rows, Table
from karat.charts import charts, png, svg
from karat.document.ink import DARK, LIGHT
from karat.installation import install_extra_command

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def summary(tmp_path_factory, journals) -> Summary:
    import msgspec

    scores = {"own": [[2.0], [3.0], [1.0]], "golden": [[4.0], [5.0], [2.0]]}
    found = summarize(journals.table(tmp_path_factory.mktemp("run") / "run", scores))
    return msgspec.structs.replace(found, kind="conversation", parts={"conversation": conversations("own", "golden")})


def pixels(image: bytes) -> np.ndarray:
    """Rows × columns × channels of a PNG of 8 bits a channel, not interlaced."""
    width, height, depth, color = struct.unpack(">IIBB", image[16:26])
    assert (depth, color) == (8, 6)
    at, data = 8, b""
    while at < len(image):
        (length,) = struct.unpack(">I", image[at : at + 4])
        if image[at + 4 : at + 8] == b"IDAT":
            data += image[at + 8 : at + 8 + length]
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(height, 1 + 4 * width)
    return unfiltered(raw).reshape(height, width, 4)


def unfiltered(raw: np.ndarray) -> np.ndarray:
    done = np.zeros((len(raw) + 1, raw.shape[1] + 3), dtype=np.int64)  # with a row and a pixel of zeros before
    for row, line in enumerate(raw, 1):
        kind, values = int(line[0]), line[1:].astype(np.int64)
        for at in range(len(values)):
            left, up, corner = done[row, at], done[row - 1, at + 4], done[row - 1, at]
            guess = [0, left, up, (left + up) // 2, paeth(left, up, corner)][kind]
            done[row, at + 4] = (values[at] + guess) % 256
    return done[1:, 4:]


def paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda one: abs(estimate - one))


@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_becomes_a_picture_and_a_drawing(summary, dark):
    for chart in charts(summary):
        image, drawing = png(chart, dark=dark, scale=1), svg(chart, dark=dark)
        assert image.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", image[16:24])
        assert width > 300 and height > 100
        root = ElementTree.fromstring(drawing)
        assert root.tag == f"{SVG}svg"
        assert (root[0].tag, root[0].text) == (f"{SVG}title", chart.title)
        assert (root[1].tag, root[1].text) == (f"{SVG}desc", chart.description)
        written = " ".join("".join(node.itertext()) for node in root.iter(f"{SVG}text")).replace("\u00a0", " ")
        assert chart.title in written, chart.name
        assert "None" not in written and "nan" not in written
        addresses = [value for node in root.iter() for key, value in node.attrib.items() if "href" in key]
        assert addresses == []


def test_texts_stay_within_the_drawing(summary):
    for chart in charts(summary):
        root = ElementTree.fromstring(svg(chart))
        width, height = (float(root.attrib[name]) for name in ("width", "height"))
        for node in root.iter(f"{SVG}text"):
            x, wide = float(node.attrib["x"]), 6.0 * len("".join(node.itertext()))
            start = {"start": x, "end": x - wide, "middle": x - wide / 2}[node.attrib["text-anchor"]]
            if "transform" not in node.attrib:
                assert start >= -12 and start + wide <= width, (chart.name, "".join(node.itertext()))
            assert 0 < float(node.attrib["y"]) < height


def test_the_background_is_that_of_the_theme_and_something_is_drawn(summary):
    chart = charts(summary)[-1]
    for dark, ink in ((False, LIGHT), (True, DARK)):
        found = pixels(png(chart, dark=dark, scale=0.5))[..., :3]
        ground = tuple(int(ink.background[at : at + 2], 16) for at in (1, 3, 5))
        assert tuple(found[0, 0]) == ground
        mark = np.array([int(ink.mark[at : at + 2], 16) for at in (1, 3, 5)])
        assert (np.abs(found - mark).sum(axis=-1) < 12).sum() > 200


def test_the_same_chart_is_the_same_picture(summary):
    chart = charts(summary)[0]
    assert png(chart) == png(chart)
    assert svg(chart) == svg(chart)


@pytest.mark.parametrize(
    ("start", "end", "texts"),
    [
        pytest.param(0.0, 1.0, ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"], id="shares"),
        pytest.param(-0.11, 0.11, ["−10 %", "−5 %", "0 %", "5 %", "10 %"], id="differences of shares"),
    ],
)
def test_an_axis_has_round_numbers(start, end, texts):
    axis = Axis(title="share", start=start, end=end, percent=True)
    table = Table(caption="", columns=(), rows=())
    panel = Rows(axis=axis, lines=(Line(name="a", marks=(Mark(value=0.0),)),))
    chart = Chart(name="a", title="t", description="d", panels=(panel,), table=table)
    written = ["".join(node.itertext()) for node in ElementTree.fromstring(svg(chart)).iter(f"{SVG}text")]
    assert [text for text in written if text.endswith("%")] == texts


def test_without_the_extra_charts_are_drawn_and_a_picture_says_what_to_install():
    script = """
import sys; sys.modules["vl_convert"] = None  # as where it is not installed
from karat.blocks import Chart, Table
from karat.charts import png, svg
from karat.errors import MissingExtra
chart = Chart(name="a", title="t", description="d", panels=(), table=Table(caption="", columns=(), rows=()))
print(svg(chart)[:4])
try:
    png(chart)
except MissingExtra as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "<svg",
        f"drawing a chart as PNG needs the extra 'plots': {install_extra_command('plots')}",
    ], done.stderr


def test_charts_load_no_drawing_library_before_they_are_drawn():
    script = "import sys, karat.charts, karat_studies.kinds.study.charts\n"
    script += "import karat_conversations.kinds.conversation.sections\n"
    script += "print(sorted({'vl_convert', 'scipy.stats', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


# Colours ----------------------------------------------------------------------------------------------------------

# Machado, Oliveira & Fernandes (2009), IEEE Trans. Vis. Comput. Graph. 15:1291, severity 1.0, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(color: str) -> np.ndarray:
    values = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    lights = sorted(float(np.array([0.2126, 0.7152, 0.0722]) @ linear(color)) for color in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("ink", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_and_text_stand_out_from_the_background(ink):
    """WCAG 2.2: 3 to 1 for what carries meaning (1.4.11), 4.5 to 1 for text (1.4.3)."""
    for color in (*ink.categories, ink.mark, ink.quiet):
        assert contrast(color, ink.background) >= 3, color
    assert contrast(ink.text, ink.background) >= 7


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("ink", [LIGHT, DARK], ids=["light", "dark"])
def test_the_first_colours_are_told_apart_by_everybody(ink, kind):
    """Of as many conditions as most experiments have; shapes and dashes tell the others."""
    seen = [lab(BLINDNESS[kind] @ linear(color)) for color in ink.categories[:4]]
    apart = [float(np.linalg.norm(one - other)) for one, other in itertools.combinations(seen, 2)]
    assert min(apart) > 10


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("ink", [LIGHT, DARK], ids=["light", "dark"])
def test_the_steps_of_a_scale_go_one_way(ink, kind):
    lightness = [lab(BLINDNESS[kind] @ linear(color))[0] for color in ink.steps]
    assert all(abs(one - other) > 7 for one, other in itertools.pairwise(lightness))
    assert lightness in (sorted(lightness), sorted(lightness, reverse=True))
