"""Files that the code of a run has written, as a browser gets them: nothing of theirs may run there."""

import hashlib
from uuid import UUID

import pytest

from offing.storage import run_files
from tests.api.conftest import Api

PNG = b"\x89PNG\r\n\x1a\n and so on"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


async def keep(api: Api, run_id: UUID, name: str, body: bytes, kind: str) -> str:
    digest = hashlib.sha256(body)
    async with api.database.transaction(api.tenant) as connection:
        await run_files.upsert_file(
            connection, api.tenant, run_id, name=name, sha256=digest.digest(), media_type=kind, body=body
        )
    return f"/api/v1/runs/{run_id}/files/{digest.hexdigest()}"


async def test_files_are_listed_in_the_order_in_which_they_were_written_last(api: Api) -> None:
    run = await api.submit()
    await keep(api, run, "plot.png", PNG, "image/png")
    await keep(api, run, "out/table.txt", b"1,2", "text/plain")
    await keep(api, run, "plot.png", PNG, "image/png")
    items = (await api.http.get(f"/api/v1/runs/{run}/files")).json()["items"]
    assert [(i["name"], i["size_bytes"], i["media_type"], i["is_image"]) for i in items] == [
        ("out/table.txt", 3, "text/plain", False),
        ("plot.png", len(PNG), "image/png", True),
    ]


@pytest.mark.parametrize(
    ("name", "body", "kind", "shown_as", "disposition"),
    [
        ("plot.png", PNG, "image/png", "image/png", "inline"),
        ("plot.svg", SVG, "image/svg+xml", "image/svg+xml", "attachment"),
        ("page.html", b"<script>alert(1)</script>", "text/plain", "application/octet-stream", "attachment"),
        ("data.bin", b"\0\1", "application/octet-stream", "application/octet-stream", "attachment"),
    ],
)
async def test_what_a_browser_could_run_is_a_download_without_origin_or_scripts(
    api: Api, name: str, body: bytes, kind: str, shown_as: str, disposition: str
) -> None:
    run = await api.submit()
    answer = await api.http.get(await keep(api, run, name, body, kind))
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, body, shown_as)
    assert answer.headers["content-disposition"] == f"{disposition}; filename*=UTF-8''{name}"
    assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_files_name_cannot_write_headers(api: Api) -> None:
    run = await api.submit()
    answer = await api.http.get(await keep(api, run, 'a/b";x="é\r\nSet-Cookie: c=1', PNG, "image/png"))
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-disposition"].startswith("inline; filename*=UTF-8''b%22%3Bx%3D%22%C3%A9%0D%0A")


async def test_a_file_is_its_owners_and_its_runs(api: Api) -> None:
    run, another = await api.submit(), await api.submit()
    path = await keep(api, run, "plot.png", PNG, "image/png")
    assert (await api.other.get(path)).status_code == 404
    assert (await api.nobody.get(path)).status_code == 401
    assert (await api.http.get(path.replace(str(run), str(another)))).status_code == 404
    assert (await api.http.get(f"/api/v1/runs/{run}/files/{'0' * 64}")).status_code == 404
    assert (await api.http.get(f"/api/v1/runs/{run}/files/nonsense")).status_code == 422
