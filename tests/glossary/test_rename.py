"""Symbols and modules of a small tree are renamed wherever they are used."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.glossary import rename
from tests.glossary.language_server import LanguageServer

REPOSITORY = Path(__file__).parents[2]

SHOP = '''"""A shop."""

class Basket:
    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.items: list[str] = []


def price_of(count: int, *, rebate: float = 0.0) -> float:
    total = count * 2.0
    return total - rebate
'''

TILL = """from shop.goods import Basket, price_of

basket = Basket(owner="Ada")
print(price_of(3, rebate=1.0), basket.owner, len(basket.items))
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with a package of two modules, which the tool takes for its own."""
    write(tmp_path, "shop/__init__.py", "")
    write(tmp_path, "shop/goods.py", SHOP)
    write(tmp_path, "shop/till.py", TILL)
    (tmp_path / ".venv").symlink_to(REPOSITORY / ".venv")
    write(tmp_path, ".gitignore", ".venv\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    monkeypatch.setattr(rename, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def listed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The language server is ready as soon as it finds a use in a file that it was not told about."""

    def wait(server: LanguageServer, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while len({path for path, _ in server.find_references(tree / "shop/goods.py", 2, 6)}) < 2:
            assert time.monotonic() < deadline, "the language server lists no files"
            time.sleep(0.1)

    monkeypatch.setattr(LanguageServer, "wait_until_ready", wait)


def write(tree: Path, path: str, text: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def rename_symbols(table: str) -> list[str]:
    symbols = [one for one in rename.read_table(table, stored=False) if isinstance(one, rename.SymbolRename)]
    edits, problems = rename.collect_edits(symbols)
    rename.apply_edits(edits)
    return problems


def move_modules(table: str) -> None:
    rename.move_modules([one for one in rename.read_table(table, stored=False) if isinstance(one, rename.ModuleRename)])


@pytest.mark.usefixtures("listed")
def test_symbols_are_renamed_in_every_file_that_uses_them(tree: Path) -> None:
    table = (
        "shop/goods.py:Basket\tCart\n"
        "shop/goods.py:Basket.items\tproducts\n"
        "shop/goods.py:Basket.__init__.owner\tcustomer\n"
        "shop/goods.py:price_of.rebate\tdiscount\n"
        "shop/goods.py:price_of.total\tamount\n"
        "shop/goods.py:price_of.missing\tanything\n"
    )
    assert rename_symbols(table) == ["shop/goods.py:price_of.missing: there is no such name"]
    till = (tree / "shop/till.py").read_text()
    assert 'Cart(owner="Ada")' not in till
    assert 'basket = Cart(customer="Ada")' in till
    assert "price_of(3, discount=1.0), basket.owner, len(basket.products)" in till
    goods = (tree / "shop/goods.py").read_text()
    assert "self.owner = customer\n        self.products: list[str] = []" in goods
    assert "def price_of(count: int, *, discount: float = 0.0)" in goods
    assert "amount = count * 2.0\n    return amount - discount" in goods


@pytest.mark.usefixtures("tree")
def test_a_moved_module_is_imported_from_its_new_path(tmp_path: Path) -> None:
    imports = "from . import goods\nfrom .goods import Basket\n\nprint(goods.price_of, Basket)\n"
    write(tmp_path, "shop/relative.py", imports)
    write(tmp_path, "settings.toml", 'module = "shop.goods"\nfile = "shop/goods.py"\n')
    move_modules("shop/goods.py\tshop/stock.py\n")
    assert not (tmp_path / "shop/goods.py").exists()
    assert (tmp_path / "shop/stock.py").read_text() == SHOP
    assert (tmp_path / "shop/till.py").read_text().startswith("from shop.stock import Basket, price_of\n")
    relative = "from . import stock\nfrom .stock import Basket\n\nprint(stock.price_of, Basket)\n"
    assert (tmp_path / "shop/relative.py").read_text() == relative
    assert (tmp_path / "settings.toml").read_text() == 'module = "shop.stock"\nfile = "shop/stock.py"\n'


@pytest.mark.usefixtures("tree")
def test_a_moved_folder_takes_its_modules_along(tmp_path: Path) -> None:
    move_modules("shop/\tstore/\n")
    assert (tmp_path / "store/goods.py").read_text() == SHOP
    assert "from store.goods import Basket" in (tmp_path / "store/till.py").read_text()


@pytest.mark.usefixtures("tree")
def test_two_modules_with_one_new_name_are_joined(tmp_path: Path) -> None:
    move_modules("shop/goods.py\tshop/sales.py\nshop/till.py\tshop/sales.py\n")
    joined = (tmp_path / "shop/sales.py").read_text()
    assert joined.startswith('"""A shop."""\n')
    assert joined.index("def price_of") < joined.index('basket = Basket(owner="Ada")')
    assert "import Basket" not in joined
    assert not (tmp_path / "shop/till.py").exists()


@pytest.mark.usefixtures("tree")
def test_a_table_has_comments_and_marks_stored_names() -> None:
    table = (
        "# a comment\nshop/goods.py:Basket\tCart\nshop/goods.py:Basket.items\tproducts\tS\nshop/till.py\tshop/desk.py\n"
    )
    plain, module = rename.read_table(table, stored=False)
    assert isinstance(plain, rename.SymbolRename)
    assert (plain.scope, plain.name, plain.new) == ((), "Basket", "Cart")
    assert module == rename.ModuleRename("shop/till.py", "shop/desk.py")
    (stored,) = rename.read_table(table, stored=True)
    assert isinstance(stored, rename.SymbolRename)
    assert (stored.scope, stored.name, stored.new) == (("Basket",), "items", "products")
