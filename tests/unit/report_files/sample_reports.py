"""Three reports that are exported in every test of files: English with tables, Chinese, and Arabic with English."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import orjson

from offing.core.report import (
    Citation,
    Layout,
    Report,
    ReportStatus,
    Section,
    Sentence,
    SourceDetails,
    TextPosition,
)
from offing.core.run import StopReason
from offing.core.tool import SourceSpan

TEXTS: dict[str, list[str]] = orjson.loads(Path(__file__).with_name("sample_texts.json").read_bytes())
MARCH = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENGLISH_CITATIONS = 40


@dataclass(frozen=True)
class WebSource:
    title: str
    url: str
    author: str = ""
    published: str = ""


def a_citation(number: int, source: WebSource, quote: str, heading: str = "") -> Citation:
    source_id = uuid5(NAMESPACE_URL, source.url)
    details = SourceDetails(source.url, source.url.startswith("http"), source.author, source.published, MARCH)
    return Citation(
        number,
        SourceSpan(source_id, number, number + len(quote)),
        quote,
        source_id,
        source.title,
        TextPosition(heading, 0, number, number + 1),
        details,
    )


def a_file_report(
    title: str, answer: Sentence, sections: tuple[Section, ...], citations: tuple[Citation, ...], limits: str = ""
) -> Report:
    return Report(
        title, ReportStatus.COMPLETE, StopReason.ANSWERED.value, answer, sections, citations, limits, "litellm:gpt-x"
    )


def english_report() -> Report:
    """Twelve sources, forty citations, two tables, a list, and sentences that nothing supports."""
    sources = [
        WebSource(
            f"Annual pump survey {year}",
            f"https://www.example.org/pumps/{year}?part=1&lang=en",
            f"Lee, Ann{year}",
            f"{year}-05",
        )
        for year in range(2010, 2022)
    ]
    citations = tuple(
        a_citation(n, sources[n % 12], f"In survey {n}, pumps moved {n * 7:,} liters per hour.", f"Results {n}")
        for n in range(1, ENGLISH_CITATIONS + 1)
    )
    prose = [
        Sentence(
            f"s{n}",
            f"Survey {n} found that pumps moved {n * 7:,} liters per hour, which is more than in the year before "
            "and less than the manufacturers had announced.",
            (n,),
            layout=Layout.PARAGRAPH if n % 5 == 1 else Layout.CONTINUED,
        )
        for n in range(1, 26)
    ]
    remark = "measured on site, with a remark of some length"
    rows = [Sentence("s30", "| Year | Flow | Remark |", layout=Layout.HEADER)]
    rows += [
        Sentence(f"s{30 + n}", f"| {2000 + n} | {n * 7:,} L/h | {remark} |", (n,), layout=Layout.ROW)
        for n in range(26, 36)
    ]
    points = range(36, 41)
    items = [Sentence(f"s{60 + n}", f"Point {n}, with its source.", (n,), layout=Layout.ITEM) for n in points]
    unsupported = (
        Sentence("s99", "Nobody has measured this.", (), ("E9: these words are not in the passage",)),
        Sentence("s98", "The flow was 12,345 liters.", (1,), unsupported_values=("12,345",), layout=Layout.PARAGRAPH),
    )
    sections = (
        Section("What the surveys found", tuple(prose)),
        Section("Flow by year", tuple(rows)),
        Section("Points", (*items, *unsupported)),
    )
    answer = Sentence("s0", "Pumps moved more water each year.", (1, 2))
    return a_file_report("Pumps: a survey of surveys", answer, sections, citations, "No survey after 2021 was read.")


def chinese_report() -> Report:
    """Chinese prose with two sources, a list and a table."""
    page = WebSource("水泵年度调查", "https://example.cn/水泵", "国家统计局", "2024")
    file = WebSource("手册.pdf", "资料/手册.pdf")
    citations = (
        a_citation(1, page, "二〇二四年水泵产量增长百分之十二。", "产量"),
        a_citation(2, file, "水泵的寿命约为十五年。"),
        a_citation(3, page, "出口占三成。"),
    )
    prose = (
        Sentence("s1", TEXTS["chinese"][0], (1,), layout=Layout.PARAGRAPH),
        Sentence("s2", TEXTS["chinese"][1], (2,), layout=Layout.CONTINUED),
        Sentence("s3", "没有来源说明价格。", (), ("E3",), layout=Layout.PARAGRAPH),
        Sentence("s4", "出口占三成。", (3,), layout=Layout.ITEM),
        Sentence("s5", "| 年份 | 产量 |", layout=Layout.HEADER),
        Sentence("s6", "| 二〇二四年 | 增长百分之十二 |", (1,), layout=Layout.ROW),
    )
    answer = Sentence("s0", "水泵产量在增长。", (1, 3))
    return a_file_report(
        "中国水泵产业研究报告", answer, (Section("产量与寿命", prose),), citations, "没有查阅二〇二四年以后的资料。"
    )


def arabic_report() -> Report:
    """Arabic prose with English words, numbers and brackets, and a Hebrew source."""
    page = WebSource("تقرير المضخات السنوي", "https://example.com/ar/pumps", "وزارة المياه", "2023-11-02")
    hebrew = WebSource("דוח המשאבות", "https://example.co.il/pumps")
    citations = (
        a_citation(1, page, TEXTS["arabic"][0]),
        a_citation(2, hebrew, "המשאבה פועלת חמש עשרה שנים."),
        a_citation(3, page, "تستخدم المضخات نظام SCADA للمراقبة."),
    )
    prose = (
        Sentence("s1", TEXTS["arabic"][1], (1,), layout=Layout.PARAGRAPH),
        Sentence("s2", TEXTS["arabic"][2], (3, 2), layout=Layout.CONTINUED),
        Sentence("s3", "لا يوجد مصدر للسعر.", (), ("E3",), layout=Layout.ITEM),
        Sentence("s4", "| السنة | الإنتاج |", layout=Layout.HEADER),
        Sentence("s5", "| 2023 | ارتفاع بنسبة 12% |", (1,), layout=Layout.ROW),
        Sentence("s6", "The English summary says that output rose by 12%.", (1,), layout=Layout.PARAGRAPH),
    )
    answer = Sentence("s0", "ارتفع إنتاج المضخات.", (1,))
    return a_file_report("تقرير عن المضخات Pumps", answer, (Section("الإنتاج والعمر", prose),), citations)


SAMPLES = {"english": english_report, "chinese": chinese_report, "arabic": arabic_report}
