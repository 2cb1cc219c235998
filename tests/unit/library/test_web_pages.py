"""What is read of web pages: titles, tables, lists, notes, and why some have no text."""

import pytest

from offing.library.extraction import DocumentRejectedError, ExtractedDocument, extract_text

WORDS = "Pools keep sockets open so that later requests need no new handshake. "


def read_page(body: str, head: str = "") -> ExtractedDocument:
    page = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return extract_text(page.encode(), "page.html")


def read_main(part: str) -> str:
    """Return the text after a first paragraph."""
    return read_page(f"<main><p>{WORDS * 4}</p>{part}</main>").text.removeprefix((WORDS * 4).strip()).strip()


def reject(body: str, head: str = "") -> DocumentRejectedError:
    with pytest.raises(DocumentRejectedError) as caught:
        read_page(body, head)
    return caught.value


@pytest.mark.parametrize(
    ("head", "heading", "title"),
    [
        ("<title>Tides of the Sea - Harbor News</title>", "Tides of the Sea", "Tides of the Sea"),
        ("<title>Harbor News | Tides of the Sea</title>", "Tides of the Sea", "Tides of the Sea"),
        ("<title>Tides of the Sea | Harbor News</title>", "", "Tides of the Sea"),
        (
            "<title>Sea: Tides | Harbor</title><meta property='og:title' content='Sea: Tides'>"
            "<meta property='og:site_name' content='Harbor'>",
            "<a href='/'>Harbor</a>",
            "Sea: Tides",
        ),
        ("<title>harbor.example</title><link rel=canonical href='https://www.harbor.example/a'>", "Tides", "Tides"),
        ("<meta property='og:title' content='Tides explained'>", "Nature Tides explained", "Tides explained"),
        ("<title>Harbor \u00bb Blog Archive \u00bb Tides</title>", "", "Tides"),
        ("<title>\u6f6e\u6c50\u89e3\u91ca-\u6e2f\u53e3\u7f51</title>", "", "\u6f6e\u6c50\u89e3\u91ca"),
        ("<title>Tides | Harbor</title><meta name=application-name content=Harbor>", "", "Tides"),
        ("<title>Why sea - and moon - matter</title>", "Why sea - and moon - matter", "Why sea - and moon - matter"),
        ("<title>Health</title>", "Tides at the health center", "Tides at the health center"),
        ("", "Ti\u00addes", "Tides"),
        ("<title>Tides</title>", "<style>.a{}</style>Tides", "Tides"),
    ],
)
def test_the_title_is_the_document_s_own_and_not_the_site_s(head: str, heading: str, title: str) -> None:
    assert read_page(f"<h1>{heading}</h1><p>{WORDS * 9}</p>", head).title == title


def test_a_table_has_a_header_row_and_rows_of_one_length() -> None:
    table = (
        "<table><caption>Sizes of pools</caption><thead><tr><th rowspan=2>Pool<th colspan=2>Sockets</tr>"
        "<tr><th>min<th>max</tr></thead><tr><td rowspan=2>small<td>1<td><p>10</p><p>(20)</p></tr><tr><td>2</tr>"
        "<tr><td colspan=3>All are closed at night.</tr><tr><td>a|b<td><td>30</tr></table>"
    )
    assert read_main(table) == (
        "Sizes of pools\n\n| Pool | Sockets / min | Sockets / max |\n| --- | --- | --- |\n| small | 1 | 10 (20) |\n"
        "| small | 2 |  |\n| All are closed at night. |  |  |\n| a\\|b |  | 30 |"
    )


def test_a_table_of_row_headings_has_an_empty_header_row_and_its_title_before_it() -> None:
    table = "<table><tr><th colspan=2>Pool</tr><tr><th>size<td>10</tr><tr><th>color<td><img alt=blue></tr></table>"
    assert read_main(table) == "Pool\n\n|  |  |\n| --- | --- |\n| size | 10 |\n| color | blue |"


def test_the_first_row_is_the_header_of_a_table_without_headings_and_empty_columns_are_left_out() -> None:
    table = "<table><tr><td>Pool<td><td>Size</tr><tr><td>north<td> <td>10</tr></table>"
    assert read_main(table) == "| Pool | Size |\n| --- | --- |\n| north | 10 |"


@pytest.mark.parametrize(
    "table",
    [
        "<table role=presentation><tr><th>one<th>two</tr><tr><td>three<td>four</tr></table>",
        "<table><tr><td>one<td>two<table><tr><td>three</table></tr><tr><td>four</tr></table>",
        f"<table><tr><td>one<td>two</tr><tr><td>three {WORDS * 5}<td>four</tr></table>",
        "<table><tr><td>one<td>two</tr><tr><td><p>three</p><p>x</p><td>four</tr></table>",
        "<table><tr><td>one<td><h2>two</h2></tr><tr><td>three<td>four</tr></table>",
    ],
)
def test_a_table_that_arranges_a_page_is_ordinary_text(table: str) -> None:
    text = read_main(table)
    assert "|" not in text
    assert [word for word in text.split() if word in ("one", "two", "three", "four")] == ["one", "two", "three", "four"]


def test_a_table_of_a_page_without_a_main_part_keeps_its_place_and_its_cells() -> None:
    table = "<table><tr><th>Pool<th>Size</tr><tr><td>north<td>10</tr></table>"
    page = f"<div><nav>menu</nav><p>{WORDS * 9}</p>{table}<p>After it: {WORDS * 9}</p></div>"
    text = read_page(f"<table><tr><td>{page}</table>").text
    before, _, after = text.partition("\n\n| Pool | Size |\n| --- | --- |\n| north | 10 |\n\n")
    assert before.startswith("Pools")
    assert after.startswith("After it")
    assert "OffingTable" not in text


def test_a_page_that_names_a_placeholder_cannot_repeat_a_table() -> None:
    table = "<table><tr><th>Pool<th>Size</tr><tr><td>north<td>10</tr></table>"
    text = read_page(f"<p>{WORDS * 9}</p>{table}<p>{'OffingTable0. OffingTable7. ' * 9}{WORDS * 9}</p>").text
    assert text.count("| north | 10 |") == 1


def test_spans_and_sparse_rows_do_not_multiply_a_table() -> None:
    wide = "<tr>" + "<td rowspan=9999>c" * 500 + "</tr>" + "<tr><td colspan=9999>d</tr>" * 500
    assert len(read_main(f"<table>{wide}</table>")) < 60_000


def test_lists_keep_their_numbers_and_depth() -> None:
    items = "<ol start=3><li>three<ul><li>a<li>b</ul><li><p>four</p></ol>"
    assert read_main(items) == "3. three\n  - a\n  - b\n4. four"


def test_captions_notes_code_and_exponents_are_kept() -> None:
    part = (
        "<figure><img><figcaption>A pool</figcaption></figure><pre>a\n  b</pre><p>10<sup>6</sup> m<sup>2</sup>, see"
        "<sup><a href=#n>1</a></sup> the 2<sup>nd</sup></p><aside class=footnote id=n>1 A note</aside>"
        "<aside>Other pages</aside><footer role=doc-endnotes>End</footer><header><p>Dek</p></header>"
    )
    assert read_main(part) == "A pool\n\n```\na\n  b\n```\n\n10^6 m^2, see[1] the 2nd\n\n1 A note\n\nEnd\n\nDek"


def test_a_formula_is_written_as_tex() -> None:
    formula = "<math alttext='{\\displaystyle a^{2}}'><mi>a</mi></math>"
    noted = "<math><semantics><mi>b</mi><annotation encoding='application/x-tex'>b_1</annotation></semantics></math>"
    part = f"<p>From {formula} and {noted} to <script type='math/tex'>c</script>.</p>"
    assert read_main(part) == "From $a^{2}$ and $b_1$ to $c$."


def test_comments_and_lists_of_other_pages_are_left_out_unless_they_are_most_of_the_text() -> None:
    comments = "<div class='comment'>First!</div>" * 3
    noise = f"<div class='related-posts'>More</div><ul id=breadcrumbs><li>Home</ul>{comments}"
    assert read_main(f"{noise}<div class=has-sidebar>Kept</div>") == "Kept"
    assert read_main(f"<div class=comment>{WORDS * 9}</div>" * 5).count("handshake") == 45


def test_previews_of_other_pages_are_not_the_main_part() -> None:
    previews = "<article>Another page about something else entirely.</article>" * 6
    text = read_page(f"<div><p>One: {WORDS * 30}</p><p>Two: {WORDS * 30}</p></div>{previews}").text
    assert text.count("handshake") == 60


@pytest.mark.parametrize(
    ("body", "head", "word"),
    [
        ("<div id=root></div><script src=a.js></script>", "", "JavaScript"),
        ("<noscript>Please enable JavaScript to run this app.</noscript><p>Loading</p>", "", "JavaScript"),
        ("<p>Bitte aktivieren Sie JavaScript.</p>", "", "JavaScript"),
        ("<main><p>Welcome</p><form><input type=password></form></main>", "", "log in"),
        ("<table><tr><th>Name<td><input></tr><tr><th>Secret<td><input type=password></tr></table>", "", "log in"),
        ("<p>Wait.</p>", "<title>Just a moment...</title>", "robots"),
        (f"<p>We use cookies. {'Our partners ask for your consent to cookies. ' * 9}</p>", "", "cookies"),
        ("<iframe src=a></iframe>", "", "frames"),
        ("<p> </p>", "", "no text"),
    ],
)
def test_a_page_without_a_text_of_its_own_is_rejected_with_the_reason(body: str, head: str, word: str) -> None:
    rejection = reject(body, head)
    assert word in rejection.problem
    assert rejection.remedy


@pytest.mark.parametrize(
    "body",
    [
        f"<p>{WORDS * 3}</p>",
        f"<p>How to enable JavaScript: {WORDS * 9}</p>",
        f"<p>A cookie keeps a session. {WORDS * 9}</p><form><input type=password></form>",
    ],
)
def test_a_page_about_such_a_thing_is_read(body: str) -> None:
    assert "handshake" in read_page(body).text
