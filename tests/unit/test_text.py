"""The tokenizer, the encoding and the term strings: pure, and alike on both databases."""

import sqlite3
import string
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import ConfigurationError
from memoranda.text import (
    LANGUAGES,
    MAX_POSITIONS,
    MAX_TERM_BYTES,
    Tokenizer,
    clean,
    encode_term,
    frequency,
    join_terms,
    overlap,
    positions,
    words,
)
from memoranda.text.compounds import indexed, is_simple

ENGLISH = Tokenizer()

SENTENCES = [
    "Nadia moved the staging cluster to Porto on the 3rd of May.",
    "周末我们在成都的小店里吃了火锅，猫也跟着来了。",
    "毎週月曜日にコーヒー豆をネットで注文している。",
    "민수는 고양이 두 마리와 책을 좋아한다.",
    "พรุ่งนี้ฉันจะไปเชียงใหม่กับครอบครัว",
    "ຂ້ອຍມັກກິນເຂົ້າໜຽວ",
    "ខ្ញុំចូលចិត្តអានសៀវភៅ",
    "ကျွန်တော် လက်ဖက်ရည် ကြိုက်တယ်",
    "Tomás préfère le café crème à Düsseldorf, naïvement.",
    "ＦＵＬＬ　ｗｉｄｔｈ　１２３４　ﾃｽﾄ",
    "मीना को किताबें पढ़ना पसंद है।",
    "שָׁלוֹם לכולם, مَرْحَبًا بِكُمْ",
    "The party was great 🎉👩‍👩‍👦 see you in 🇵🇹 👍🏽!",
    "Alice喜欢北京烤鸭employees",
    "See src/memoranda/text.py, ERR-7F3A/9, C++17, c#, .NET, R&D and AT&T in v2.10.3 (ana.silva+x@mail.example.com).",
    "https://www.example.com/a/b?x=1#top costs 1,250.50 at 12:30 on 2026-05-08; getUserName() snake_case O'Brien's",
]

texts = st.one_of(
    st.sampled_from(SENTENCES),
    st.text(max_size=60),
    st.text(alphabet=string.ascii_letters + string.digits + " ./-_@+#&:'\\,?=%~", max_size=60),
    st.text(alphabet="aZ9é猫カー한ก\u0301\u200d😀🇵’'-/. ", max_size=40),
)


def finds(query: str, text: str) -> bool:
    """Tell whether every term of the query is among the text's, as an AND search would."""
    asked = ENGLISH.query_terms(query)
    return bool(asked) and set(asked) <= set(ENGLISH.terms(text))


def meets(query: str, text: str) -> bool:
    """Tell whether any term of the query is among the text's, as an OR search would."""
    return not set(ENGLISH.query_terms(query)).isdisjoint(ENGLISH.terms(text))


# -- what is found by what


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("releases", "The release went out in March."),
        ("Nadia", "We met at Nadia's place; NADIA’S place is small."),
        ("dog", "The dogs’ bowls are empty."),
        ("北京烤鸭", "他说北京烤鸭很好吃"),
        ("猫", "我家的猫很胖"),
        ("猫", "他养了两只猫"),
        ("책", "민수는 책을 읽는다"),
        ("コーヒー", "朝はコーヒーを飲む"),
        ("ﾃｽﾄ", "テスト環境が落ちた"),
        ("เชียงใหม่", "พรุ่งนี้ฉันจะไปเชียงใหม่กับครอบครัว"),
        ("សៀវភៅ", "ខ្ញុំចូលចិត្តអានសៀវភៅ"),
        ("employees", "Alice喜欢北京烤鸭employees"),
        ("alice", "Alice喜欢北京烤鸭employees"),
        ("烤鸭", "Alice喜欢北京烤鸭employees"),
        ("cafe", "Meet me at the café."),
        ("CAFÉ", "the cafe on the corner"),
        ("cafe\u0301", "café"),
        ("Malmo", "She works in Malmö."),
        ("strasse", "Die Straße ist gesperrt"),
        ("password", "the pass\u200bword\u00ad is in the vault"),
        ("ABC123", "ＡＢＣ１２３"),
        ("1234", "code ١٢٣٤"),
        ("किताबें", "मीना को किताबें पढ़ना पसंद है।"),
        ("שלום", "שָׁלוֹם לכולם"),
        ("مرحبا", "مَرْحَبًا بِكُمْ"),
        ("🎉", "The party was great 🎉"),
        ("👍", "agreed 👍🏽"),
        ("🇵🇹", "moving to 🇵🇹 soon"),
        ("src/memoranda/text.py", "Edit src/memoranda/text.py first"),
        ("text.py", "Edit src/memoranda/text.py first"),
        ("memoranda/text.py", "Edit src/memoranda/text.py first"),
        ("memoranda", "Edit src/memoranda/text.py first"),
        ("src\\memoranda\\text.py", "Edit src/memoranda/text.py first"),
        ("err-7f3a/9", "It failed with ERR-7F3A/9."),
        ("ERR-7F3A", "It failed with ERR-7F3A/9."),
        ("example.com", "https://www.example.com/docs?x=1"),
        ("ana@example.com", "write to <Ana@Example.com>, please"),
        ("example.com", "ana@example.com"),
        ("http://example.com/docs/", "see https://example.com/docs"),
        ("1000", "it cost 1,000 euros"),
        ("1,000", "it cost 1000 euros"),
        ("1.2.3", "upgraded to v1.2.3"),
        ("v1.2.3", "upgraded to 1.2.3"),
        ("2026", "due on 2026-05-08"),
        ("user name", "call getUserName()"),
        ("getusername", "call getUserName()"),
        ("case", "rename snake_case_name"),
        ("snake_case_name", "rename snake_case_name"),
        ("iphone", "my iPhone15 broke"),
        ("mile", "a 10-mile run"),
        ("10-mile run", "a 10-mile run"),
        ("email", "send me an e-mail"),
        ("mother", "a mother-daughter trip"),
        ("homme", "l'homme qui rit"),
        ("O’Brien", "Talk to O'Brien"),
        ("brien", "Talk to O'Brien"),
        ("C++", "She writes C++17 and Go"),
        ("gitignore", "add it to .gitignore"),
        ("C", "the C compiler"),
        ("AI", "our AI budget"),
        ("go", "a service in Go"),
    ],
)
def test_a_text_is_found_by_its_words_identifiers_and_parts(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("C", "She writes C++ all day"),
        ("C++", "She writes C all day"),
        ("C#", "She writes C++ all day"),
        ("C", "She writes C# all day"),
        ("net", "ported to .NET last year"),
        (".net", "net income rose"),
        ("R&D", "the letters R and D"),
        ("AT&T", "at the T junction"),
        ("ERR-7F3A/9", "It failed with ERR-7F3A/8."),
        ("err-7f3a/9", "It failed with ERR-7F3A/8."),
        ("ERR-42", "It failed with ERR-43."),
        ("v1.2.3", "upgraded to v1.2.4"),
        ("2026-05-08", "due on 2026-05-09"),
        ("text.py", "the text of the py file"),
        ("ana@example.com", "bob@example.com"),
        ("don't", "Don Quixote"),
        ("火车", "火锅和汽车"),
        ("🎂", "The party was great 🎉"),
    ],
)
def test_names_that_differ_by_one_sign_are_not_confused(query: str, text: str) -> None:
    assert not meets(query, text)


@pytest.mark.behaviour("R22")
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("example.com", ["example.com"]),
        ("docs/a/x.md", ["docs/a/x.md"]),
        ("where is search.py", ["search.py"]),
        ("what changed in v1.2.3", ["chang", "v1.2.3"]),
        ("a.b", ["a.b"]),
        ("what is it and who are they?", []),
        ("is it ok to do so in db", ["ok", "db"]),
        ("is it ok to restart db", ["restart"]),
        ("why did -O2 break", ["o2", "break"]),
        ("-staging NOT prod", ["stage", "prod"]),
        ('"exact phrase" OR (other) AND near*', ["exact", "phrase", "near"]),
        ("什么", []),
        ("!!! ... --- ''", []),
        ("", []),
        ("release release RELEASE", ["releas"]),
    ],
)
def test_query_hygiene(query: str, kept: list[str]) -> None:
    assert ENGLISH.query_terms(query) == [encode_term(token) for token in kept]


def test_a_query_is_bounded() -> None:
    assert len(ENGLISH.query_terms(" ".join(f"word{i}" for i in range(10_000)))) == 64


@given(texts)
def test_every_text_is_found_by_itself(text: str) -> None:
    assert set(ENGLISH.query_terms(text)) <= set(ENGLISH.terms(text))


@given(texts)
def test_composition_and_width_do_not_matter(text: str) -> None:
    assert ENGLISH.terms(unicodedata.normalize("NFD", text)) == ENGLISH.terms(unicodedata.normalize("NFC", text))


@given(st.text(alphabet=string.ascii_lowercase + " ", max_size=60))
def test_plain_words_keep_their_order_and_count(text: str) -> None:
    assert Tokenizer("none").terms(text) == [encode_term(word) for word in text.split()]


@given(st.from_regex("[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]+", fullmatch=True, alphabet=string.ascii_letters + string.digits))
def test_what_is_simple_is_indexed_under_itself_alone(word: str) -> None:
    assert is_simple(word) and set(indexed(word)) == {word}


@pytest.mark.parametrize("compound", ["getUser", "gpt4", "ab12", "e-mail", "c++", "it's", "café", "١٢", ""])
def test_what_may_have_parts_is_not_simple(compound: str) -> None:
    assert not is_simple(compound)


def test_stop_words_are_indexed() -> None:
    assert ENGLISH.terms("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_a_language_brings_its_stemmer_and_its_stop_words() -> None:
    german = Tokenizer("german")
    assert german.query_terms("Wo sind die Häuser?") == german.query_terms("Haus")
    assert set(Tokenizer("french").query_terms("mange")) & set(Tokenizer("french").terms("mangée"))
    assert set(Tokenizer("french").query_terms("mangee")) <= set(Tokenizer("french").terms("mangée"))
    assert Tokenizer("russian").query_terms("кошки") == Tokenizer("russian").query_terms("кошка")


def test_an_unknown_language_is_refused_with_the_names() -> None:
    with pytest.raises(ConfigurationError, match="english"):
        Tokenizer("klingon")
    assert "none" in LANGUAGES


def test_both_snowball_packages_stem_alike() -> None:
    Stemmer = pytest.importorskip("Stemmer", reason="not applicable: PyStemmer is an optional speed-up")
    pure = __import__("snowballstemmer.english_stemmer", fromlist=["EnglishStemmer"]).EnglishStemmer()
    endings = "generously running flies dying happily skies relational conditional national agreed plastered"
    vocabulary = words(" ".join([endings, *SENTENCES]))
    quick = Stemmer.Stemmer("english")
    assert {word: pure.stemWord(word) for word in vocabulary} == {word: quick.stemWord(word) for word in vocabulary}


# -- encoding


def decode(term: str) -> str:
    """Undo `encode_term`, to show that no two tokens can meet; hashed terms excepted."""
    if term[:2] in ("x3", "x4"):
        width = int(term[1])
        return "".join(chr(int(term[i : i + width], 36)) for i in range(2, len(term), width))
    if term[:2] != "x0":
        return term
    symbols = {"z": "z"} | dict(zip("abcdefghijkl", "./-_@+#&:'\\=", strict=True))
    token, place = "", 2
    while place < len(term):
        if term[place] != "z":
            token, place = token + term[place], place + 1
        elif term[place + 1] in symbols:
            token, place = token + symbols[term[place + 1]], place + 2
        else:
            end = place + 2 + int(term[place + 1])
            token, place = token + chr(int(term[place + 2 : end], 36)), end
    return token


@given(st.one_of(st.text(min_size=1, max_size=30), st.text(alphabet="abxyz0123.+#", min_size=1, max_size=12)))
def test_encoding_is_ascii_begins_with_a_letter_and_can_be_undone(token: str) -> None:
    term = encode_term(token)
    assert term.isascii() and term.isalnum() and term == term.lower() and term[0].isalpha() and len(term) <= 80
    assert term.startswith("x0zy") or decode(term) == token


@given(st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=40))
def test_a_plain_word_stands_for_itself(word: str) -> None:
    assert encode_term(word) == word


def test_long_tokens_are_hashed_and_stay_distinct() -> None:
    first, second = encode_term("猫" * 500 + "a"), encode_term("猫" * 500 + "b")
    assert first != second and len(first) == len(second) == 36


def test_golden_terms() -> None:
    assert join_terms(ENGLISH.terms("C++ x86 猫が ERR-7F3A/9")) == (
        " x0czfzf  x0x86  x3mqz  x3mqz9jg  x0errzc7f3azb9  x0errzc7f3a  err  x07f3a "
    )


@pytest.mark.parametrize("tokenizer", ["ascii", "unicode61"])
def test_sqlite_sees_every_term_as_one_word(tokenizer: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create virtual table terms using fts5(content, tokenize = '{tokenizer}')")
    connection.execute("create virtual table seen using fts5vocab(terms, instance)")
    for row, sentence in enumerate(SENTENCES, 1):
        connection.execute(
            "insert into terms (rowid, content) values (?, ?)", (row, join_terms(ENGLISH.terms(sentence)))
        )
    for row, sentence in enumerate(SENTENCES, 1):
        seen = connection.execute("select term from seen where doc = ? order by offset", (row,)).fetchall()
        assert [term for (term,) in seen] == ENGLISH.terms(sentence)
    connection.close()


def test_terms_are_the_same_in_another_process_and_thread() -> None:
    code = "import sys; from memoranda.text import Tokenizer; print(' '.join(Tokenizer().terms(sys.argv[1])))"
    text = " ".join(SENTENCES)
    other = subprocess.run(
        [sys.executable, "-c", code, text],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    expected = ENGLISH.terms(text)
    assert other.stdout.split() == expected
    with ThreadPoolExecutor(8) as pool:
        assert all(terms == expected for terms in pool.map(lambda _: Tokenizer().terms(text), range(64)))


# -- term strings


@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True), max_size=40))
def test_frequency_and_positions_read_what_was_joined(terms: list[str]) -> None:
    joined = join_terms(terms)
    assert joined.split() == terms
    places = positions(joined, set(terms) | {"absent!"})
    assert set(places) == set(terms)
    for term in terms:
        assert frequency(joined, term) == terms.count(term) == len(places[term])
        assert all(terms[place - 1] == term for place in places[term])


def test_no_terms_are_an_empty_string() -> None:
    assert join_terms([]) == ""
    assert frequency("", "cat") == 0 and positions("", {"cat"}) == {}


def test_the_caps_keep_whole_terms() -> None:
    assert len(join_terms(["cat"] * 20_000).split()) == MAX_POSITIONS
    joined = join_terms([f"t{'x' * 70}{i}" for i in range(MAX_POSITIONS)])
    assert len(joined) <= MAX_TERM_BYTES and joined.endswith(" ") and not joined.endswith("  ")
    assert all(term.startswith("txx") and len(term) > 71 for term in joined.split())


@pytest.mark.parametrize(
    "text",
    ["word " * 210_000, "a.b/c_d-" * 131_072, "x" * 1_048_576, "猫" * 350_000, "'" * 1_048_576, "a" + "_" * 1_048_576],
)
def test_a_megabyte_is_cut_to_the_caps(text: str) -> None:
    assert len(ENGLISH.terms(text)) <= MAX_POSITIONS
    assert len(ENGLISH.query_terms(text)) <= 64


# -- clean, words, overlap


@given(st.text(alphabet=st.characters(), max_size=50))
def test_clean_is_idempotent_and_never_longer(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned and len(cleaned) <= len(text)
    assert "\0" not in cleaned
    cleaned.encode()
    assert cleaned == text or "\0" in text or any("\ud800" <= c <= "\udfff" for c in text)


def test_clean_takes_nul_and_lone_surrogates_only() -> None:
    assert clean("a\0b\ud83d c\udc00 👩\u200d👦 \u200b\r\n") == "ab\ufffd c\ufffd 👩\u200d👦 \u200b\r\n"
    assert clean("\ud83d\ude00") == "😀"


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words("What's the name of Ana’s dog?") == {"what", "the", "name", "of", "ana", "dog"}
    assert words("e-mail v1.2 DON'T") == {"e", "mail", "v1", "2", "don", "t"}
    assert words("北京烤鸭 and 猫") == {"北京", "京烤", "烤鸭", "and", "猫"}
    assert words("Ｃａｆé हिन्दी 🎉") == {"cafe", "हिन्दी"}
    assert words("") == frozenset()


@given(texts, texts)
def test_overlap_is_the_share_of_the_query_that_is_present(query: str, text: str) -> None:
    asked = words(query)
    share = overlap(asked, words(text))
    assert 0 <= share <= 1
    assert overlap(asked, asked) == (1 if asked else 0)
    assert overlap(asked, words(text) | asked) == (1 if asked else 0)
    if asked:
        assert share == pytest.approx(len(asked & words(text)) / len(asked))


def test_overlap_of_the_worked_example() -> None:
    assert overlap(words("What's the name of Ana's dog?"), words("Ana's dog is called Rex.")) == pytest.approx(1 / 3)
