from pathlib import Path

import pytest

from patra_ingest.expr.xml_tree import read_xml

DC = "http://purl.org/dc/elements/1.1/"


def root_of(body, **namespaces):
    (root,) = read_xml(body.encode(), namespaces).children
    return root


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param("<t>1.73 m<sup>2</sup></t>", "1.73 m2", id="mixed content"),
        pytest.param("<t>a<i>b<b>c</b></i>d<i>e</i></t>", "abcde", id="in order"),
        pytest.param("<t>a<!-- x -->b<?p y?>c</t>", "abc", id="comments and instructions"),
        pytest.param("<t><![CDATA[P<0.001 & more]]></t>", "P<0.001 & more", id="CDATA"),
        pytest.param("<t>&lt;&#945;&amp;</t>", "<α&", id="references"),
        pytest.param("<t>4002.e26</t>", "4002.e26", id="no number is guessed"),
        pytest.param("<t> 007 </t>", " 007 ", id="blanks are kept"),
        pytest.param("<t/>", "", id="nothing"),
        pytest.param('<!DOCTYPE t [<!ENTITY n "in">]><t>1&n;2</t>', "1in2", id="its own entity"),
    ],
)
def test_the_text_of_a_node_is_all_the_text_below_it(body, text):
    assert root_of(body).text == text


def test_a_document_holds_its_root():
    document = read_xml(b"<a><b/></a>", {})

    assert document.name == ""
    assert document.attributes == {}
    assert [child.name for child in document.children] == ["a"]
    assert document.named("a")[0].named("b")[0].name == "b"
    assert document.to_text() == "<a><b/></a>"


def test_children_are_in_order_and_by_name():
    root = root_of("<r>x<a>1</a><!-- no child --><b/>y<?nor this?><a>2</a></r>")

    assert [child.name for child in root.children] == ["a", "b", "a"]
    assert [child.text for child in root.named("a")] == ["1", "2"]
    assert list(root.named("nothing")) == []


def test_a_namespace_is_known_by_its_address_and_not_by_the_prefix_of_the_body():
    body = f"""<r xmlns="urn:main" xmlns:q="{DC}" xmlns:z="urn:other" xml:lang="en" q:id="1" n="2">
        <q:title/><z:note/><plain xmlns=""/></r>"""
    root = root_of(body, m="urn:main", dc=DC)

    assert root.name == "m:r"
    assert [child.name for child in root.children] == ["dc:title", "note", "plain"]
    assert root.attributes == {"xml:lang": "en", "dc:id": "1", "n": "2"}
    assert (root.attribute("dc:id"), root.attribute("id")) == ("1", None)
    assert root_of(body, **{"": "urn:main"}).name == "r"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param('<r  a="1" ><x/></r >', '<r a="1"><x/></r>', id="blanks in tags"),
        pytest.param("<r><x></x></r>", "<r><x/></r>", id="an empty element"),
        pytest.param(
            "<r>\n <x>1</x>\n <y>\n  <z/>\n </y>\n</r>", "<r><x>1</x><y><z/></y></r>", id="indents"
        ),
        pytest.param("<r>a\n <i>b</i>\n</r>", "<r>a\n <i>b</i>\n</r>", id="no indent beside text"),
        pytest.param(
            "<r><i>a</i> <i>b</i></r>", "<r><i>a</i> <i>b</i></r>", id="a blank between words"
        ),
        pytest.param("<r>5<sup>2</sup> m</r>", "<r>5<sup>2</sup> m</r>", id="mixed content"),
        pytest.param("<r a='\"'>&lt;&#945;</r>", '<r a="&quot;">&lt;α</r>', id="references"),
        pytest.param("<r><![CDATA[a<b]]></r>", "<r>a&lt;b</r>", id="CDATA"),
        pytest.param("<r>a<!-- b -->c<?d e?></r>", "<r>ac</r>", id="comments and instructions"),
    ],
)
def test_a_node_is_stored_as_its_text_however_the_body_writes_it(body, text):
    assert root_of(body).to_text() == text
    assert root_of(text).to_text() == text


def test_an_item_declares_the_namespaces_that_it_needs_and_no_others():
    around = (
        '<set xmlns="urn:main" xmlns:q="urn:q" xmlns:z="urn:z">\n <q:r z:a="1"><b/></q:r></set>'
    )
    (item,) = root_of(around).children

    assert item.to_text() == (
        '<q:r xmlns:q="urn:q" xmlns:z="urn:z" z:a="1"><b xmlns="urn:main"></b></q:r>'
    )
    (alone,) = root_of('<set xmlns:z="urn:z"><r>1</r></set>').children
    assert alone.to_text() == "<r>1</r>"
    assert around.count("\n") == 1, "nothing was taken out of the document itself"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"Rate exceeded.", id="plain text"),
        pytest.param(b'{"error": "API rate limit exceeded"}', id="JSON"),
        pytest.param(b"<html><br></html>", id="HTML"),
        pytest.param(b"<a><b></a>", id="cut off"),
        pytest.param(b"<a>\x00</a>", id="a null byte"),
        pytest.param(b"<a>\xff</a>", id="a wrong byte"),
        pytest.param(b'<?xml version="1.0" encoding="nonsense"?><a/>', id="a wrong encoding"),
        pytest.param(b'<!DOCTYPE a SYSTEM "a.dtd"><a>1&nbsp;2</a>', id="an unknown entity"),
        pytest.param(b"<a>" * 300 + b"</a>" * 300, id="too deep"),
    ],
)
def test_what_is_not_xml_says_so(body):
    with pytest.raises(ValueError, match="the body is not XML"):
        read_xml(body, {})


def test_a_file_is_never_read(tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("CANARY")
    for declared in ("<!ENTITY x SYSTEM '%s'>", "<!ENTITY %% x SYSTEM '%s'> %%x;"):
        entity = declared % secret.as_uri()
        with pytest.raises(ValueError, match="not defined") as caught:
            read_xml(f"<!DOCTYPE a [{entity}]><a>&x;</a>".encode(), {})
        assert "CANARY" not in str(caught.value)


def test_a_dtd_is_never_read(tmp_path: Path):
    dtd = tmp_path / "a.dtd"
    dtd.write_text("<!ENTITY canary 'read'>")

    with pytest.raises(ValueError, match="'canary' not defined"):
        read_xml(f"<!DOCTYPE a SYSTEM '{dtd.as_uri()}'><a>&canary;</a>".encode(), {})


def test_a_billion_laughs_is_an_error_and_not_a_hang():
    entities = '<!ENTITY l0 "lolololololololol">' + "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)
    )

    with pytest.raises(ValueError, match="amplification"):
        read_xml(f"<!DOCTYPE a [{entities}]><a>&l9;</a>".encode(), {})
