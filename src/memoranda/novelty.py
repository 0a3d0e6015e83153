"""Whether a text says anything that another one does not: the guards that keep a correction from passing as a repeat.

Two texts can lie close together and mean the opposite, and one can hold the other only to deny it. A correction that
is lost is far worse than a repeat that is stored twice, so whatever is in doubt is new. A repeat says the same words in
the same order, or it stands in the old text as a statement of its own that nothing around it takes back. Pure: the
texts come in, a verdict goes out, in time linear in their length.
"""

# ruff: noqa: RUF001 - letters and quotation marks of other scripts are meant

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from unicodedata import normalize

MOST_PLACES = 50
"""Places where a text may hold another one; what comes oftener is not looked through."""

# Words after which a sentence means its opposite, without apostrophes, in the languages the stemmer knows.
_DENIAL_WORDS = """
not no never none nor neither without cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt
couldnt hasnt havent hadnt aint nothing nobody nowhere anymore stopped stops quit longer former formerly
nicht kein keine keinen keiner keinem nie niemals ohne nichts mehr
ne pas jamais aucun aucune sans rien plus
nunca ni sin nada ningun ninguna tampoco
non mai senza niente nessuno
nao nem sem nenhum nenhuma
niet geen nooit zonder
inte ej aldrig utan ikke aldri uden
ei eivat koskaan nem soha nincs nu niciodata fara
не нет ни никогда без больше
"""
# Further ones, with their accents, and those of other languages.
_MORE_DENIALS = (
    "não ningún fără niciodată eivät nie nigdy bez değil yok hayır δεν μην لا لم لن ليس नहीं tidak bukan không"
)
_CONDITIONS = """
if unless when whenever whether while until till provided assuming suppose supposing otherwise else
wenn falls sofern ob solange bis sobald si sil sils quand lorsque jusqu cuando mientras hasta se quando finché até caso
als indien tenzij wanneer tot om hvis dersom når när jos ha если когда пока якщо коли jeśli jeżeli gdy když eğer
αν όταν إذا لو عندما אם अगर यदि जब jika kalau nếu khi
"""
_REPORTS = """
think thinks thought thinking say says said saying claim claims claimed believe believes believed hope hopes hoped
guess guesses wish wishes dream dreams dreamt pretend pretends imagine imagines heard hear told tells asks asked wonders
doubt doubts suggest suggests suggested propose proposes proposed plan plans planned rejected draft theory according
rumour rumours rumor rumors reportedly allegedly supposedly apparently seem seems seemed example e.g maybe perhaps
possibly probably likely unlikely may might could would should must ought can
glaubt glaube denkt denke meint meine sagt sagte behauptet hofft vielleicht angeblich wohl wahrscheinlich vermutlich
gerücht könnte würde wäre hätte sollte soll dürfte
pense dit croit prétend affirme espère peut-être probablement rumeur selon paraît
cree dice piensa afirma espera quizá quizás vez acaso probablemente posiblemente rumor según
crede pensa sostiene spera forse probabilmente magari secondo acha diz talvez provavelmente boato segundo
zegt gelooft beweert hoopt misschien waarschijnlijk gerucht tror säger siger sier påstår kanske måske kanskje ehkä talán
думает считает говорит сказал сказала утверждает надеется возможно наверное может вероятно якобы слух слухи похоже
думає каже можливо myśli mówi twierdzi może chyba podobno belki diyor sanıyor düşünüyor
ίσως λέει νομίζει ربما يقول قال قالت يظن אולי אומר חושב शायद कहता कहती mungkin katanya
"""
_LIMITS = """
only merely just but however although though except instead rather less least fewer than hardly barely scarcely rarely
seldom sometimes occasionally almost nearly before after during since ago used previously earlier vs approx ended left
nur kaum selten manchmal aber doch obwohl außer ausser weniger vor nach früher
seulement rarement parfois mais moins sauf avant après que solo sólo raramente pero menos excepto salvo antes después
ma meno tranne prima dopo só apenas mas exceto depois slechts alleen maar minder behalve zelden
bara kun bare endast men mindre utom только лишь редко но кроме меньше чем раньше до после tylko ale oprócz rzadko
mniej niż sadece ama فقط لكن רק אבל केवल लेकिन
"""
# Words of a change that came after what stands beside them.
_CHANGES = """
now update updated change changed changes moved postponed cancelled canceled replaced replaces against abandoned dropped
deprecated withdrawn divorced fired sold closed lost jetzt inzwischen geändert verschoben abgesagt ersetzt gegen
maintenant changé annulé remplacé contre ahora cambió cancelado contra ora adesso spostato agora mudou nu flyttad
теперь сейчас перенесли отменили изменили против teraz şimdi الآن עכשיו अब sekarang bây
"""
# Words that take back what stands anywhere in a text.
_REVERSALS = """
false falsely wrong untrue incorrect mistaken mistake error myth myths lie lies lied joke joking joked fiction fake
correction retracted revoked invalid outdated obsolete
falsch unwahr irrtum lüge gelogen witz scherz korrektur berichtigung veraltet ungültig
faux fausse erreur mensonge blague falso falsa error mentira broma falsi sbagliato bugia scherzo errado onwaar fout
leugen falsk fel løgn lögn неправда неверно ложь ошибка шутка устарело fałsz nieprawda kłamstwo yanlış yalan
"""
_NUMBERS = """
half one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty
ninety hundred thousand million
halb eins zwei drei vier fünf sechs sieben acht neun zehn demi deux trois quatre cinq medio dos tres cuatro cinco
"""
_COMPARING = "more most better best worse much little again equally together too either mehr wieder plus encore más più"
_PLACES = "on at in by for with from to into every each am im an bei mit à en dans pour avec con para da в на с для"
# Words that point at something said before: in another text they may mean somebody else.
_POINTERS = """
he she it they him her them his hers its their this that these those there er sie ihn ihm ihr sein seine il elle ils
elles lui ce él ella ellos ellas lei loro ele ela eles hij zij hon он она они его ее её их это
"""
# Beginnings that leave a sentence as true as it is: "as everybody knows", "by the way".
_LEAD_WORDS = """
as everybody everyone you we all know knows of course by the way note fyi also indeed yes remember btw and
wie jeder wir alle wissen weiß übrigens natürlich hinweis und comme chacun sait bien sûr note et
como todos saben sabemos por cierto nota y как все знают кстати и
"""
_AND_WORDS = "and und et y e og och и és ve και"
_LABEL_WORDS = "note fyi btw remember hinweis nota"
_FILLER_WORDS = "please also bitte auch aussi también anche também ook"
_SPECIFIC_WORDS = "the this that these those my your his her our their some"
_DENIALS = frozenset(_DENIAL_WORDS.split())
_REVERSING = frozenset(_REVERSALS.split())
_DOUBTS = _REVERSING | frozenset(f"{_MORE_DENIALS} {_CONDITIONS} {_REPORTS} {_LIMITS} {_CHANGES}".split())
_SHARED = frozenset(f"{_NUMBERS} {_COMPARING} {_PLACES}".split())
_POINTING = frozenset(_POINTERS.split())
_LEADS = frozenset(_LEAD_WORDS.split())
_LABELS = frozenset(_LABEL_WORDS.split())
_AND = frozenset(_AND_WORDS.split())
_FILLERS = frozenset(_FILLER_WORDS.split())
_SPECIFIC = frozenset(_SPECIFIC_WORDS.split())

_UNSPACED_DENIALS = re.compile("不|没|沒|无|無|别|別|未|非|勿|ない|ません|なかった|ぬ|안 |않|못|없|아니|말고|ไม่")
_UNSPACED_DOUBTS = re.compile(
    "如果|若|假如|要是|的话|的話|除非|只|觉得|覺得|认为|認為|以为|以為|说|說|可能|也许|也許|大概|或许|或許|但|之前|以前|以后|比|吗|嗎"
    "|现在|現在|改为|改為|改到|取消|反对|反對|今は|変更|中止|지금|변경|취소"
    "|もし|なら|たら|れば|場合|思う|思い|思っ|言う|言い|言っ|らしい|そうだ|かも|たぶん|だろう|でしょう|だけ|しか|でも|けど|前|後"
    "|만약|만일|면 |라고|다고|생각|아마|것 같|지만|뿐|ถ้า|หาก|อาจ|คิดว่า|บอกว่า|แต่"
)
_UNSPACED_REVERSALS = re.compile("错|錯|假的|谎|謊|误|誤|嘘|間違|冗談|거짓|틀렸|틀린")
_UNSPACED_POINTERS = re.compile("他|她|它|这|這|那|彼|それ|これ|그")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_GAP = re.compile(r"[\s/*_~|—–(){}<>\[\]]+|--+|\.\.+|…")
_LEAD = re.compile(r"[^\W\d_][\w', ]*[,:]")
_ELIDED = re.compile(r"\bn'")
_NOT = re.compile(r"\b(?:(ca)n't|(wo)n't|(can)not)\b|n't\b")
# A blank line, or a line that begins as an item of a list does, ends a sentence; any other line end is a space.
_PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n|(?=(?:[-*•–]|\d{1,3}[.)])\s))")
_ITEM = re.compile(r"\A(?:[-*•–]|\d{1,3}[.)])(?=\s)")
_STOP = re.compile(r"[.!?…;](?=\s|\Z)|[。！？；｡\n]")
_MARKS = ".,;:!?…"
_ENDS = " .!,;。！｡…"
_QUOTES = '"“”„«»「」『』'
_ONE_QUOTE = str.maketrans(dict.fromkeys("“”„«»", '"'))


def denials(text: str) -> tuple[str, ...]:
    """Return the words of a text that turn its meaning round, in order; empty when it denies nothing."""
    folded = text.casefold()
    words = (match[0].replace("'", "").replace("’", "") for match in _WORD.finditer(folded))
    return tuple(sorted(word for word in words if word in _DENIALS)) + tuple(
        match[0].strip() for match in _UNSPACED_DENIALS.finditer(folded)
    )


def contains(longer: str, shorter: str) -> bool:
    """Say whether a text states another one as it stands: whole sentences, wherever they come, and nothing doubtful.

    Case and white space do not count. A sentence may go on with "and" and a few words more. None counts that a heading,
    or a sentence beside it, denies, limits, reports, changes or makes depend on something, in any place where it comes.
    """
    wanted, text, asks = _plain(shorter), _paragraphs(longer), _asks(shorter)
    if not wanted.strip(_ENDS + "?") or wanted not in text or _count_reversals(text) > _count_reversals(wanted):
        return False
    sentences = list(_sentences(text))
    if any(_doubtful(text[begin:over]) for begin, over in sentences if text[begin] == "#" or text[over - 1] == ":"):
        return False
    starts = [start for start, _ in sentences]
    points, places = _points(wanted), list(islice(_places(text, wanted), MOST_PLACES + 1))
    for start in places:
        end = start + len(wanted)
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        if first < 0 or (points and first > 0):
            return False
        # Past the end of its sentence where the text itself ends in a mark that was taken off.
        stop = max(sentences[last][1], end)
        if (text[stop : stop + 1] in ("?", "？")) != asks or not _leads(text[starts[first] : start]):
            return False
        before, after = (
            "".join(text[begin : over + 1] for begin, over in beside)
            for beside in (sentences[max(first - 1, 0) : first], sentences[last + 1 : last + 2])
        )
        if _doubtful(before) or _doubtful(after) or _points(after) or not _adds(text[end:stop].strip(".!…")):
            return False
        if after[:1].isdigit() and wanted[-1].isdigit():
            return False
    return 0 < len(places) <= MOST_PLACES


def says_nothing_new(new: str, old: str, *, near: bool) -> bool:
    """Say whether a new text only repeats an old one.

    Args:
        new: The text that is to be stored.
        old: A text that is stored already.
        near: Whether their vectors lie so close that they mean nearly the same.

    Returns:
        True when both say the same words in the same order, or the old one states the new one among other things; of
        texts that are near, words like "please" do not count, nor whether "Deploys on Friday are forbidden" or "Deploys
        are forbidden on Friday".
    """
    if not new.strip().strip(" .!?,;"):
        return False
    if _plain(new) == _plain(old) and _asks(new) == _asks(old):
        return True
    if near:
        tokens, others = _tokens(new), _tokens(old)
        if tokens and (_told(tokens) == _told(others) or _settled(tokens) == _settled(others)):
            return True
    return contains(old, new)


def _lower(text: str) -> str:
    # Not casefold: in German "in Maßen" and "in Massen" are opposites. Not NFKC: it makes 102 of 10².
    return normalize("NFC", text).lower().replace("’", "'")


def _plain(text: str) -> str:
    return " ".join(_lower(text).split()).rstrip(_ENDS + "?？")


def _asks(text: str) -> bool:
    ending = text.rstrip()[-3:]
    return "?" in ending or "？" in ending


def _paragraphs(text: str) -> str:
    """Return the text with a line end where a paragraph or an item of a list ends, and nowhere else."""
    parts = (_ITEM.sub("", " ".join(part.split())) for part in _PARAGRAPH.split(_lower(text)))
    return "\n".join(part.strip() for part in parts)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and where the mark stands that ends it; empty ones are left out."""
    start = 0
    for match in [*_STOP.finditer(text), None]:
        end = match.start() if match else len(text)
        begin = end - len(text[start:end].lstrip())
        if begin < end:
            yield begin, end
        start = match.end() if match else end


def _places(text: str, wanted: str) -> Iterator[int]:
    """Yield where the text holds what is wanted, words of scripts with spaces only as a whole."""
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        before, after = text[max(start - 1, 0) : start], text[end : end + 1]
        cut = (before.isalnum() and not _UNSPACED.match(wanted)) or (
            after.isalnum() and not _UNSPACED.match(wanted[-1])
        )
        if not cut:
            yield start
        start = text.find(wanted, end)


def _words(text: str) -> list[str]:
    parts = _GAP.split(text)
    return [word for part in parts if (word := part.strip(_MARKS + _QUOTES + "-'").replace("'", ""))]


def _count_reversals(text: str) -> int:
    return sum(word in _REVERSING for word in _words(text)) + len(_UNSPACED_REVERSALS.findall(text))


def _doubtful(text: str) -> bool:
    """Say whether a sentence could deny, limit, report, doubt or ask what stands beside it."""
    if "?" in text or "？" in text or _ELIDED.search(text) or denials(text) or not _DOUBTS.isdisjoint(_words(text)):
        return True
    return _UNSPACED_DOUBTS.search(text) is not None or _UNSPACED_REVERSALS.search(text) is not None


def _points(text: str) -> bool:
    """Say whether a sentence speaks of something said before it."""
    return not _POINTING.isdisjoint(_words(text)) or _UNSPACED_POINTERS.search(text) is not None


def _leads(text: str) -> bool:
    """Say whether what begins a sentence leaves the rest as true as it is: nothing, or "as everybody knows,"."""
    lead = text.rstrip()
    if not lead:
        return True
    known = _LABELS if lead[-1] == ":" else _LEADS
    return _LEAD.fullmatch(lead) is not None and known.issuperset(_words(lead.replace(",", " ")))


def _adds(text: str) -> bool:
    """Say whether the end of a sentence only adds to what it begins with: nothing, or "and" and up to four words."""
    words = _words(text)
    if not text.strip():
        return True
    if text.lstrip(", ") == text or not words or words[0] not in _AND or len(words) > 5:
        return False
    numbered = any(character.isdigit() for character in text) or not _SHARED.isdisjoint(words)
    return not numbered and not _doubtful(text) and set(text).isdisjoint(_QUOTES + ":()[]{}")


def _tokens(text: str) -> list[str]:
    """Return the words of a text with every mark that can carry meaning; signs such as `-5` and `C#` stay whole."""
    written = _NOT.sub(
        lambda found: f"{'can' if found[1] or found[3] else 'will' if found[2] else ''} not", _lower(text)
    )
    tokens: list[str] = []
    for chunk in written.translate(_ONE_QUOTE).split():
        word = chunk.rstrip(_MARKS + '"')
        tokens += [part for part in (word, chunk[len(word) :]) if part]
    while tokens and not tokens[-1].strip(_ENDS):
        tokens.pop()
    return tokens


def _told(tokens: list[str]) -> list[str]:
    """Return the words without fillers; all of them where one could count, as in "auch wenn es regnet"."""
    if _doubtful(" ".join(tokens)):
        return tokens
    return [token for token in tokens if token not in _FILLERS] or tokens


def _settled(tokens: list[str]) -> list[str]:
    """Return "deploys on Friday are forbidden" as "deploys are forbidden on Friday"; whatever else, as it is.

    Only what is said of things in general can be turned so: a meeting on Friday that is cancelled was perhaps cancelled
    on Monday.
    """
    if len(tokens) == 5 and tokens[1] in ("on", "in", "at") and tokens[3] == "are" and tokens[0] not in _SPECIFIC:
        return [tokens[0], "are", tokens[4], *tokens[1:3]]
    return tokens
