import pytest

from adaexplore_lsp.features.commands import searchable
from adaexplore_lsp.jobs import Target


@pytest.fixture
def saved(make, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(make.source)
    return make.document(path=path)


def test_a_saved_module_is_searched(saved):
    assert searchable(saved, "Norm") == Target(str(saved.path), "Norm")


def test_the_search_gets_the_path_that_the_editor_shows(make, saved, tmp_path):
    link = tmp_path / "link.py"
    link.symlink_to(saved.path)
    assert searchable(make.document(path=link), "Norm") == Target(str(link), "Norm")


def test_what_cannot_be_searched_says_what_to_do(make, saved):
    assert "open the file first" in searchable(None, "Norm")
    assert "no nn.Module class Nor. Did you mean Norm?" in searchable(saved, "Nor")
    assert "Write above the class" in searchable(saved, "Bare")
    saved.path.write_text("other")
    assert searchable(saved, "Norm") == "AdaExplore: save model.py first: the search reads it from disk"
