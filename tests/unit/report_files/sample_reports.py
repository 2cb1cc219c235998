"""Three reports that are exported in every test of files: English with tables, Chinese, and Arabic with English."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

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
        number, SourceSpan(source_id, number, number + len(quote)), quote, source_id, source.title,
        TextPosition(heading, 0, number, number + 1), details,
    )  # fmt: skip


def a_file_report(
    title: str, answer: Sentence, sections: tuple[Section, ...], citations: tuple[Citation, ...], limits: str = ""
) -> Report:
    return Report(
        title, ReportStatus.COMPLETE, StopReason.ANSWERED.value, answer, sections, citations, limits, "litellm:gpt-x"
    )


def english_report() -> Report:
    """Twelve sources, forty citations, two tables, a list, and sentences that nothing supports."""
    sources = [
        WebSource(f"Annual pump survey {2010 + i}", f"https://www.example.org/pumps/{2010 + i}?part=1&lang=en", f"Lee, Ann{i}", f"{2010 + i}-05")
        for i in range(12)
    ]  # fmt: skip
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
    rows = [Sentence("s30", "| Year | Flow | Remark |", layout=Layout.HEADER)]
    rows += [
        Sentence(f"s{30 + n}", f"| {2000 + n} | {n * 7:,} L/h | measured on site, with a remark of some length |", (n,), layout=Layout.ROW)
        for n in range(26, 36)
    ]  # fmt: skip
    items = [Sentence(f"s{60 + n}", f"Point {n} of the list, with its source.", (n,), layout=Layout.ITEM) for n in range(36, 41)]  # fmt: skip
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
        Sentence("s1", "二〇二四年,水泵产量增长百分之十二，其中大型水泵的增长最快，主要原因是农业灌溉与城市供水的需求持续上升，各地也在更换使用多年的旧设备。", (1,), layout=Layout.PARAGRAPH),
        Sentence("s2", "一台水泵的寿命约为十五年（见《手册》），超过这一年限之后，维修费用往往高于更换费用。", (2,), layout=Layout.CONTINUED),
        Sentence("s3", "没有来源说明价格。", (), ("E3",), layout=Layout.PARAGRAPH),
        Sentence("s4", "出口占三成。", (3,), layout=Layout.ITEM),
        Sentence("s5", "| 年份 | 产量 |", layout=Layout.HEADER),
        Sentence("s6", "| 二〇二四年 | 增长百分之十二 |", (1,), layout=Layout.ROW),
    )  # fmt: skip
    answer = Sentence("s0", "水泵产量在增长。", (1, 3))
    return a_file_report("中国水泵产业研究报告", answer, (Section("产量与寿命", prose),), citations, "没有查阅二〇二四年以后的资料。")  # fmt: skip


def arabic_report() -> Report:
    """Arabic prose with English words, numbers and brackets, and a Hebrew source."""
    page = WebSource("تقرير المضخات السنوي", "https://example.com/ar/pumps", "وزارة المياه", "2023-11-02")
    hebrew = WebSource("דוח המשאבות", "https://example.co.il/pumps")
    citations = (
        a_citation(1, page, "ارتفع إنتاج المضخات بنسبة 12% في عام 2023."),
        a_citation(2, hebrew, "המשאבה פועלת חמש עשרה שנים."),
        a_citation(3, page, "تستخدم المضخات نظام SCADA للمراقبة."),
    )
    prose = (
        Sentence("s1", "ارتفع إنتاج المضخات بنسبة 12% في عام 2023 (وفقا للتقرير السنوي)، وكان الارتفاع الأكبر في المضخات الكبيرة المستخدمة في الري وفي شبكات المدن.", (1,), layout=Layout.PARAGRAPH),
        Sentence("s2", "تستخدم المضخات الحديثة نظام SCADA (Supervisory Control) للمراقبة عن بعد، ويعمل بعضها خمس عشرة سنة.", (3, 2), layout=Layout.CONTINUED),
        Sentence("s3", "لا يوجد مصدر للسعر.", (), ("E3",), layout=Layout.ITEM),
        Sentence("s4", "| السنة | الإنتاج |", layout=Layout.HEADER),
        Sentence("s5", "| 2023 | ارتفاع بنسبة 12% |", (1,), layout=Layout.ROW),
        Sentence("s6", "The English summary says that output rose by 12%.", (1,), layout=Layout.PARAGRAPH),
    )  # fmt: skip
    answer = Sentence("s0", "ارتفع إنتاج المضخات.", (1,))
    return a_file_report("تقرير عن المضخات Pumps", answer, (Section("الإنتاج والعمر", prose),), citations)


SAMPLES = {"english": english_report, "chinese": chinese_report, "arabic": arabic_report}
