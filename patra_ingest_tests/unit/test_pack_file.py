"""Pack files: what is read as what, what is refused, and that nothing else can happen."""

import time

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patra_ingest.errors import PackError
from patra_ingest.packs import builtin_packs
from patra_ingest.registry import pack_file
from patra_ingest.registry.pack_file import PackText, read_pack_file, read_pack_text


def value(text):
    return read_pack_text(text, "x.yaml").value


@pytest.fixture(params=["C", "Python"])
def loader(request, monkeypatch):
    """Both parsers of PyYAML: which of them is there depends on how it was installed."""
    chosen = yaml.CSafeLoader if request.param == "C" else yaml.SafeLoader
    monkeypatch.setattr(pack_file, "_LOADER", chosen)


PLAIN = [
    *((word, None) for word in ("", "~", "null", "Null", "NULL")),
    *((word, True) for word in ("true", "True", "TRUE")),
    *((word, False) for word in ("false", "False", "FALSE")),
    *((word, word) for word in ("yes", "No", "NO", "on", "OFF", "y", "n", "tRue", "nULL")),
    *((word, word) for word in ("2025-01-01", "2025-01-01T12:30:00Z", "2025-01-01 12:30:00.5 +2")),
    *((word, word) for word in ("12:30", "1:30.5", "190:20:30")),
    *((word, word) for word in ("010", "-07", "00", "0o17", "0x1F", "0b11", "1_000", "007.5")),
    *(
        (word, word)
        for word in ("=", "-a", ".", "1.2.3", "1e", "+", "10.1000/x", "inf", "nan", "٣")
    ),
    ("0", 0),
    ("-12", -12),
    ("+5", 5),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775807", 1 - 2**63),
    ("1.50", 1.5),
    ("-.5", -0.5),
    ("1.", 1.0),
    ("1e3", 1000.0),
    ("1.5E-3", 0.0015),
    ("1e300", 1e300),
    ("'5'", "5"),
    ('"true"', "true"),
    ("!!str 5", "5"),
    ("! 5", "5"),
    ("!!map {b: 1}", {"b": 1}),
    ("!!seq [1]", [1]),
    ("<<", "<<"),
    ('"a\\tb\\n"', "a\tb\n"),
    ("|\n  a\n  b\n", "a\nb\n"),
]


@pytest.mark.parametrize(("written", "meant"), PLAIN, ids=[repr(text) for text, _ in PLAIN])
def test_a_value_is_read_as_the_core_schema_says_and_text_when_in_doubt(loader, written, meant):
    found = value(f"a: {written}")["a"]

    assert (found, type(found)) == (meant, type(meant))


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
NOT_TEXT = "A key is text; write it in quotes."
REFUSED = {
    "nothing": ("", r"x holds no mapping\. A pack starts"),
    "a comment": ("# nothing", "x holds no mapping"),
    "a list": ("- a", "x holds no mapping"),
    "a word": ("a", "x holds no mapping"),
    "an open bracket": ("a: 1\nb: [1,\nc: 2\n", r"x, line \d, column \d+: .*from line 2 on"),
    "a tab": ("a:\n\tb: 1", r"x, line 2, column 1: this is not valid YAML .*no tabs"),
    "an escape of a tag": ("a: !%ED%A0%80 x", "x.*: this is not valid YAML .*can't decode"),
    "a huge escape": ('a: "\\UFFFFFFFF"', "x.*: this is not valid YAML"),
    "a huge version": (f"%YAML 1.{'1' * 5000}\n---\na: 1", "x.*: this is not valid YAML"),
    "two documents": ("a: 1\n---\nb: 2", "x, line 2: a second document begins"),
    "two empty documents": ("---\n---\n", "x, line 2: a second document begins"),
    "a key twice": ("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3", "line 5: the key c is already at line 3"),
    "a key twice in a flow": ("a: {b: 1, 'b': 1}", "line 1: the key b is already at line 1"),
    "a merge twice": ("a: {b: 1, <<: {}, <<: {}}", "the key << is already at line 1"),
    "a number as key": ("a:\n  404: x", f"line 2: the key 404 is not text. {NOT_TEXT}"),
    "a bool as key": ("true: x", "line 1: the key true is not text"),
    "null as key": ("~: x", "line 1: the key null is not text"),
    "a list as key": ("? [a]\n: b", "line 1: the key a list or mapping is not text"),
    "an object": ("a: !!python/object/apply:os.system [ls]", "tag !!python/object/apply:os.system"),
    "a name": ("a: !!python/name:os.system", "tag !!python/name:os.system is not part of"),
    "a tag of one's own": ("a: 1\nb: !secret x", "line 2: the tag !secret is not part of"),
    "binary": ("a: !!binary aGk=", "the tag !!binary is not part of"),
    "a set": ("a: !!set {b}", "the tag !!set is not part of"),
    "a bomb": (BOMB, "line 5: the pack has more than 50,000 values, aliases written out"),
    "a long list": ("a:\n" + "- b\n" * 60_000, "line 49999: the pack has more than 50,000"),
    "a list in itself": ("a: &a [*a]", r"line 1: the alias \*a contains itself"),
    "a mapping in itself": ("&a {b: {c: *a}}", r"the alias \*a contains itself"),
    "a merge of itself": ("a: &a {<<: *a}", r"the alias \*a contains itself"),
    "an alias of nothing": ("a: 1\nb: *c", r"line 2: the alias \*c has no anchor before it"),
    "an anchor twice": ("a: &x 1\nb: &x 2", "line 2: the anchor &x is already at line 1"),
    "a deep list": ("a: " + "[" * 900_000, "line 1: .* nested more than 40 deep"),
    "deep blocks": ("\n".join(" " * n + "a:" for n in range(50)), "line 41: .* more than 40 deep"),
    "deep aliases": (f"a: &a {'[' * 30 + ']' * 30}\nb: {'[' * 12}*a", "line 2: .* more than 40"),
    "a merge of text": ("a:\n  <<: b", "line 2: << takes mappings only"),
    "a merge of texts": ("a: {<<: [{}, b]}", "line 1: << takes mappings only"),
    "NUL": ("a: 1\r\nb: \0", r"line 2: the control character U\+0000 is not text"),
    "an escape sequence": ("a: \x1b[31m", r"the control character U\+001B"),
    "NUL, escaped": ('a: 1\nb: "\\n\\0"', r"line 2: the control character U\+0000"),
    "half a character": ("a: \ud800", r"line 1: the control character U\+D800"),
    "infinity": ("a: .inf", r"the number \.inf is not finite"),
    "minus infinity": ("a: -.Inf", r"the number -\.Inf is not finite"),
    "not a number": ("a: .NaN", r"the number \.NaN is not finite"),
    "too large a fraction": ("a: 1e999", "the number 1e999 is not finite"),
    "too large a number": ("a: 9223372036854775808", "has more than 64 bits. .*in quotes"),
    "thousands of digits": ("a: " + "9" * 9000, "the number 9{60}… is not finite or has more"),
    "too long a text": ("a: " + "é" * 500_000, "The pack x is larger than 1,000,000 bytes"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_place(loader, text, said):
    with pytest.raises(PackError, match=said):
        read_pack_text(text, "x")


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(loader):
    assert value("\ufeffa: 1\r\nb:\r\n  - 2\r\n") == {"a": 1, "b": [2]}


def test_a_merge_adds_what_is_not_there_and_the_first_source_wins(loader):
    text = """
        one: &one {a: 1, b: 1, c: 1}
        two: &two {<<: *one, b: 2, d: 2}
        both: {b: 3, <<: [{c: 9}, *two]}
        quoted: {"<<": 4}
    """
    found = value(text)

    assert found["two"] == {"a": 1, "b": 2, "c": 1, "d": 2}
    assert found["both"] == {"a": 1, "b": 3, "c": 9, "d": 2}
    assert found["quoted"] == {"<<": 4}


def test_what_an_alias_repeats_is_a_value_of_its_own():
    found = value("a: &a {b: [1]}\nc: *a")
    found["a"]["b"].append(2)

    assert found["c"] == {"b": [1]}


LINED = """\
# A comment.

provenance:
  code: x
endpoints:
  works:
    stop: [A,
      B]
    window: &window
      lag: 1d
  other:
    window:
      <<: *window
      span: 2d
  third:
    window: *window
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 3),
        (("provenance",), 3),
        (("provenance", "code"), 4),
        (("provenance", "cod"), 3),
        (("nowhere", "at", "all"), 3),
        (("endpoints", "works", "stop", 0), 7),
        (["endpoints", "works", "stop", 1], 8),
        (("endpoints", "works", "stop", 2), 7),
        (("endpoints", "works", "stop", 1, "enum"), 8),
        (("endpoints", "other", "window"), 12),
        (("endpoints", "other", "window", "span"), 14),
        (("endpoints", "other", "window", "lag"), 10),
        (("endpoints", "third", "window"), 16),
        (("endpoints", "third", "window", "lag"), 10),
    ],
)
def test_a_path_has_the_line_it_is_written_on_or_that_of_what_is_around_it(loader, path, line):
    assert read_pack_text(LINED, "x").line_of(path) == line


def test_without_any_line_there_is_none():
    assert PackText("x", {}, {}).line_of(("a",)) is None


@pytest.mark.parametrize("path", builtin_packs(), ids=lambda path: path.stem)
def test_a_built_in_pack_means_the_same_to_any_reader_of_yaml(path):
    found = read_pack_file(path)

    assert found.value == yaml.safe_load(path.read_text())
    assert found.where == str(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"The pack .*x\.yaml cannot be read \(No such file or directory\)"),
        (b"a: 1\nb: \xff\n", r"x\.yaml, line 2: the file is not UTF-8"),
        ("a: 1".encode("utf-16"), r"x\.yaml, line 1: the file is not UTF-8"),
        (b"a: [" + b" " * 5_000_000, r"x\.yaml is larger than 1,000,000 bytes"),
    ],
    ids=["missing", "Latin-1", "UTF-16", "large"],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, content, said):
    file = tmp_path / "x.yaml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(PackError, match=said):
        read_pack_file(file)


def test_a_folder_and_a_name_no_file_can_have_are_refused(tmp_path):
    with pytest.raises(PackError, match="is a folder"):
        read_pack_file(tmp_path)
    with pytest.raises(PackError, match=r"cannot be read \(embedded null"):
        read_pack_file(tmp_path / "a\0b")


def test_a_file_that_never_ends_is_not_read_to_its_end(tmp_path):
    endless = tmp_path / "x.yaml"
    endless.symlink_to("/dev/zero")

    with pytest.raises(PackError, match="larger than 1,000,000 bytes"):
        read_pack_file(endless)


def test_a_pack_of_200_lines_is_read_at_once():
    text = "".join(f"part{n}:\n  path: $.a.b\n  size: {n}\n  list: [A, B]\n" for n in range(50))
    best = min(_seconds(text) for _ in range(5))

    assert best < 0.020


def _seconds(text):
    start = time.perf_counter()
    read_pack_text(text, "x")
    return time.perf_counter() - start


PIECES = "a b 1 : - ? , [ ] { } & * ! | > ' \" % @ # ~ << --- ... \t \n \0 \r .inf 1e9 é \\ \ufeff"
YAMLISH = st.lists(st.sampled_from([*PIECES.split(" "), " ", "\n", ": ", "- ", "&a ", "*a", "\n "]))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(st.characters(exclude_categories=())), YAMLISH.map("".join)))
@example("a: &a [*a]")
def test_any_text_is_a_pack_or_refused_and_never_anything_else(text):
    try:
        found = read_pack_text(text, "x")
    except PackError:
        return
    assert isinstance(found.value, dict)
    assert found.lines.keys() == {(), *_paths(found.value)}


def _paths(value, path=()):
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, kept in inside:
        yield (*path, key)
        if isinstance(kept, dict | list):
            yield from _paths(kept, (*path, key))


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).map(
    lambda text: text.replace("\ufffe", "").replace("\uffff", "")
)
# What YAML 1.1 writes without quotes and we read as a number: 1e5.
NAMES = WORDS.filter(lambda text: not text[:1].isdigit() and text[:1] not in "+-.")
LEAVES = st.one_of(
    st.none(), st.booleans(), NAMES, st.integers(1 - 2**63, 2**63 - 1), st.floats(allow_nan=False)
).filter(lambda leaf: leaf not in (float("inf"), float("-inf")))
TREES = st.recursive(
    LEAVES, lambda kept: st.lists(kept, max_size=4) | st.dictionaries(NAMES, kept, max_size=4)
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=4), st.booleans())
def test_what_was_written_as_yaml_is_read_back(tree, flow):
    assert value(yaml.safe_dump(tree, default_flow_style=flow, allow_unicode=True)) == tree
