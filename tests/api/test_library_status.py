"""The state of the library's vectors over HTTP."""

from tests.api.conftest import Api


async def test_without_an_embedding_model_searches_have_no_notices_and_no_text_has_vectors(api: Api) -> None:
    await api.hands.document("tide.md", "# Tide\n\nThe tide comes twice a day.\n")
    status = (await api.http.get("/api/v1/library/status")).json()
    assert status == {"text_count": 1, "embedding": None, "reranks": False}
    search = (await api.http.get("/api/v1/library/search", params={"q": "tide"})).json()
    assert (len(search["items"]), search["notices"]) == (1, [])
