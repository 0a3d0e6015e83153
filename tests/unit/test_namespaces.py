"""Namespaces: paths of labels, and the text that stands for one."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda import namespaces

labels = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6)
plain = st.text("ab.%/-25E", min_size=1, max_size=4)
paths = st.lists(labels | plain, min_size=1, max_size=4).map(tuple)


@given(paths, paths)
def test_no_two_paths_share_a_text_and_each_comes_back(one, other):
    assert namespaces.decode(namespaces.encode(one)) == one
    assert (namespaces.encode(one) == namespaces.encode(other)) == (one == other)


@given(paths, paths)
def test_what_lies_below_a_path_is_one_range_of_texts(path, other):
    first, end = (text.encode() for text in namespaces.below(namespaces.encode(path)))
    for candidate in (other, path, (*path, *other), (path[0] + "x", *other)):
        text = namespaces.encode(candidate).encode()
        assert (first <= text < end) == (candidate[: len(path)] == path)


@given(paths)
def test_the_paths_above_a_path_are_its_beginnings(path):
    expected = [namespaces.encode(path[:depth]) for depth in range(1, len(path) + 1)]
    assert namespaces.above(namespaces.encode(path)) == expected


@given(paths, st.data())
def test_a_star_stands_for_one_label(path, data):
    place = data.draw(st.integers(0, len(path) - 1))
    pattern = (*path[:place], "*", *path[place + 1 :])
    assert namespaces.begins(path, pattern) and namespaces.ends(path, pattern)
    assert namespaces.begins((*path, "z"), pattern) and namespaces.ends(("z", *path), pattern)
    assert not namespaces.begins(path[:-1], pattern) and not namespaces.ends(path[1:], pattern)
    assert namespaces.fixed(pattern) == pattern[: pattern.index("*")]
