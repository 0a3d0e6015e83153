"""What a question asks for in scripts without spaces, and what it counts that nobody has said."""

import pytest

from memoranda.text import Tokenizer, decode_unspaced, encode_term
from memoranda.text.unspaced import UNKNOWN_CHARACTER, UNKNOWN_PAIR, is_unspaced, unknown_words


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("我跟王芳去了西湖吗", ["王芳", "芳去", "西湖"]),  # function words part words
        ("我现在的目的", ["现在", "目的"]),  # but are none inside a word
        ("什么时候", []),
        ("公園で食べた", ["公園", "食", "食べ"]),  # a particle is dropped, an ending asked for by its beginning
        ("言われた机", ["言", "言わ", "机"]),  # where kana end a word begins
        ("すきやき", ["すき", "きや", "やき"]),
        ("茶ア", ["茶"]),  # a lone sign of a syllable is indexed in its pair only
        ("ア", ["ア"]),
        ("책을 민수랑 어디서", ["책을", "책", "민수", "수랑"]),  # a noun of one syllable is indexed alone
    ],
)
def test_a_question_is_cut_where_words_part(question, asked):
    assert [decode_unspaced(term) for term in Tokenizer().query_terms(question)] == asked


def test_only_terms_of_these_scripts_are_decoded():
    assert [decode_unspaced(encode_term(token)) for token in ("茶", "민수", "ทย", "я", "мы", "🚀", "é2", "tea")] == [
        *("茶", "민수", "ทย"),
        *[""] * 5,
    ]


def test_a_pair_where_two_known_words_meet_is_nothing_unknown():
    assert unknown_words(["剧以"], ["话剧", "以后"]) == 0
    assert unknown_words(["剧沙", "沙漠", "漠"], ["话剧"]) == 2 * UNKNOWN_CHARACTER
    assert unknown_words(["なく"], []) == UNKNOWN_PAIR


@pytest.mark.parametrize("text", ["茶", "すき", "カレー", "민수", "힘"])
def test_texts_without_spaces_are_told_by_their_terms(text):
    assert is_unspaced(f" tea  {encode_term(text)} ")


def test_texts_with_spaces_are_told_by_their_terms():
    assert not is_unspaced(" tea  x0zy12  " + "  ".join(map(encode_term, ("мы", "чай", "שלום", "🚀", "c++"))) + " ")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("何先生的电话", "何先生"),
        ("曾老师住在哪里", "曾老师"),
        ("酒吧在哪里", "酒吧"),
        ("さんま", "さんま"),
        ("いるか", "いるか"),
        ("ねこのなまえは", "ねこ"),
    ],
)
def test_a_part_of_a_word_that_looks_like_a_function_word_is_asked_for(asked, said):
    terms = Tokenizer("english").query_terms(asked)
    assert {encode_term(said[i : i + 2]) for i in range(len(said) - 1)} <= set(terms)
