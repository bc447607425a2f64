from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonpath_ng.ext import parse

from patra_ingest.expr.functions import FUNCTIONS, Bound
from patra_ingest.expr.path import compile_path
from patra_ingest.expr.template import compile_template

names = st.sampled_from(["a", "b", "next-cursor", "dc:title", "where", "x y", "it's", "0", "é"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"]),
    lambda trees: st.lists(trees, max_size=3) | st.dictionaries(names, trees, max_size=4),
    max_leaves=12,
)


def quoted(name):
    return "['" + name.replace("'", r"\'") + "']"


literals = st.sampled_from(["'a'", "'b'", "''", "0", "1", "-1", "1.5", "true", "false", "null"])
tests = st.builds(
    "@{}{}".format,
    st.sampled_from(["", ".a", ".b", "[0]", "[*]", ".a.b", "..a"]),
    st.just("")
    | st.builds("{}{}".format, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), literals),
)
filters = st.builds(
    lambda listed, joint: f"[?({joint.join(listed)})]",
    st.lists(tests | tests.map("({})".format), min_size=1, max_size=3),
    st.sampled_from([" && ", " || "]),
) | st.sampled_from(["[?(!@.a)]", "[?(!@.b && @.a)]"])
stray_steps = (
    names.map(quoted)
    | st.integers(min_value=-3, max_value=3).map(lambda index: f"[{index}]")
    | st.sampled_from(["[*]", ".*", ".a", ".b", ".next-cursor", "..a", "..b", "..*", "..a[0]"])
    | filters
)


@st.composite
def trees_and_paths(draw):
    """A tree and a plain path that mostly leads somewhere in it."""
    tree = node = draw(trees)
    text = "$"
    for _ in range(draw(st.integers(min_value=0, max_value=4))):
        inside = list(node.items()) if isinstance(node, dict) else []
        inside += enumerate(node) if isinstance(node, list) else []
        if not inside or draw(st.integers(0, 4)) == 0:
            return tree, text + draw(stray_steps)
        name, node = draw(st.sampled_from(inside))
        known = quoted(name) if isinstance(name, str) else f"[{name}]"
        text += draw(st.sampled_from([known, "[*]", ".*"]))
    return tree, text + draw(st.just("") | stray_steps)


@given(trees, filters, st.sampled_from(["$", "$.a", "$[*]", "$..a"]))
@example({"a": [True, 1]}, "[?(@ == 1)]", "$.a")
@example({"a": [None, {}]}, "[?(@.a != null)]", "$.a")
@example({"a": [True, None]}, "[?(@ < true || @ > null)]", "$.a")
@example({"a": [True, None]}, "[?(@ <= true)]", "$.a")
@example([{"a": [1, "a"]}], "[?(@.a[*] < 'b')]", "$")
def test_a_compiled_filter_keeps_what_jsonpath_ng_keeps(tree, filtered, before):
    expected = [match.value for match in parse(before + filtered).find(tree)]

    assert is_the_same(compile_path(before + filtered).all(tree), expected)


@given(trees, st.lists(st.sampled_from(["..a", "..b", "..*", "[*]", ".a", "[0]"]), max_size=3))
def test_a_compiled_descent_visits_what_jsonpath_ng_visits(tree, steps):
    text = "$" + "".join(steps)
    expected = [match.value for match in parse(text).find(tree)]

    assert is_the_same(compile_path(text).all(tree), expected)


def is_the_same(one, other):
    """Equal, and True is not 1."""
    return repr(one) == repr(other)


@given(trees_and_paths())
@example(({"a": {"b": 1}, "b": [2]}, "$[*].*"))
def test_a_compiled_path_finds_what_jsonpath_ng_finds(tree_and_path):
    tree, text = tree_and_path
    expected = [match.value for match in parse(text).find(tree)]

    assert compile_path(text).all(tree) == expected
    assert compile_path(text).first(tree) == (expected[0] if expected else None)


@given(st.lists(names, min_size=1, max_size=4), trees)
def test_a_bare_name_and_a_quoted_name_are_the_same(listed, tree):
    bare = [name for name in listed if name not in ("x y", "it's")]

    one, other = "$" + "".join(f".{n}" for n in bare), "$" + "".join(quoted(n) for n in bare)

    assert compile_path(one).all(tree) == compile_path(other).all(tree)


@given(st.text(alphabet="$.[]*'\"ab-0:?@()=,&|` ", max_size=16), trees)
@example("$.a[?(@.b=~'(')]", {"a": [{"b": "a"}]})
@example("$.a - $.b", {"a": [], "b": {}})
def test_any_text_is_a_path_or_a_value_error(text, tree):
    with suppress(ValueError):
        path = compile_path(text)
        found = path.all(tree)
        assert path.first(tree) == (found[0] if found else None)


class Guarded:
    """An object that notices every attempt to look inside it."""

    def __getattribute__(self, name):
        # type() and isinstance() ask for the class, which tells nothing.
        if name != "__class__":
            pytest.fail(f"a template reached for {name}")
        return object.__getattribute__(self, name)

    def __repr__(self):
        return "guarded"


VARIABLES = {
    "a": {"b": "text", "from": datetime(2026, 1, 1, tzinfo=UTC), "none": None, "object": Guarded()},
    "n": 1.5,
    "list": ["a", 1, None],
    "tree": {"b": [Guarded(), {"b": 1}], "c": Guarded()},
    "bound": Bound(datetime(2026, 1, 1, tzinfo=UTC), "yyyy"),
    "object": Guarded(),
}
arguments = st.sampled_from(
    ["", "()", "(1d)", "('x')", "(a.b)", "(yyyy)", "(UTC)", "(n, list)", "('a', 'b')"]
) | st.sampled_from(
    ["('$.c')", "('$.c.x')", "('$..b')", "(\"$.c['x','y']\")", "(object)", "('$.b[0:1].get')"]
)
places = st.builds(
    lambda name, calls: "${" + name + "".join(calls) + "}",
    st.sampled_from(["a.b", "a.from", "a.none", "a.object", "n", "list", "object", "a", "zz"])
    | st.sampled_from(["tree", "tree.b", "bound", "bound.at", "a.none?", "object?", "bound?"])
    | st.sampled_from(["a.b.__class__", "object.secret", "a.__class__.__mro__", "n.real"]),
    st.lists(
        st.builds("|{}{}".format, st.sampled_from([*FUNCTIONS, "eval"]), arguments), max_size=3
    ),
)
likely = st.lists(places | st.sampled_from(["x", "$", "$${", "}"]), max_size=3).map("".join)
unlikely = st.text(alphabet="${}|().'\"ab, -", max_size=20)


@given(likely | unlikely)
def test_a_template_gives_text_or_nothing_or_a_value_error_and_reaches_nothing(text):
    with suppress(ValueError):
        template = compile_template(text)
        clause = template.render_clause(VARIABLES)
        assert clause is None or type(clause) is str
        rendered = template.render(VARIABLES)
        assert rendered is None or type(rendered) is str
        assert clause == rendered


@given(likely)
def test_a_template_gives_a_plain_value_or_a_value_error(text):
    with suppress(ValueError):
        value = compile_template(text).value(VARIABLES)
        assert value is None or isinstance(value, str | int | float | list | dict)


@given(likely)
def test_a_template_whose_names_are_known_never_misses_a_variable(text):
    with suppress(ValueError):
        template = compile_template(text)
        if not template.check(VARIABLES.keys()):
            try:
                template.render(VARIABLES)
            except ValueError as error:
                if "no variable" in str(error):
                    pytest.fail(f"{text} passed the check and still misses a variable")


@given(st.text(max_size=30))
def test_text_without_places_is_left_as_it_is(text):
    escaped = text.replace("${", "$${")

    assert compile_template(escaped).render({}) == text


@given(st.text(max_size=10))
def test_a_value_is_never_read_as_a_template(text):
    assert compile_template("<${v}>").render({"v": text + "${v}"}) == f"<{text}${{v}}>"
