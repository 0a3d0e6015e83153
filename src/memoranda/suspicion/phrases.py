"""The sentences that give a model orders, in the languages they come in.

A phrase counts where it commands, at the beginning of a clause; it does not where it is quoted, reported or denied
("the page told the bot to ignore all previous instructions"). All texts here are normal and in lower case.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

import re
from functools import cache

_BEFORE = 160  # characters read before a phrase: the clause that leads to it
_AROUND = 240  # characters read before an address, and behind an opening quotation mark

# Alternatives by role, English first, then German, French, Spanish and Russian.
_WORDS = {
    "IGNORE": "ignore|disregard|forget|override|bypass|discard|erase|do not follow|don't follow|do not obey|don't obey"
    "|stop following|stop obeying|pay no attention to|do not listen to|don't listen to"
    "|ignorier(?:e|t|en sie)?|vergiss|vergesst|vergessen sie|missachte(?:n sie)?|verwirf|umgehe"
    "|ignore[rz]?|oublie[zr]?|ne (?:tiens|tenez) (?:pas|plus) compte de|fai(?:s|tes) abstraction de"
    "|ignora|ignorad|olvida|olvide|descart[ae]|ha(?:z|ga) caso omiso de|no hagas caso (?:a|de)|no sigas"
    "|(?:про)?игнорируй(?:те)?|забудь(?:те)?|отбрось(?:те)?|не обращай(?:те)? внимания на|не следуй(?:те)?",
    "ALL": "all|any|every|each|alle[nr]?|sämtlichen?|toutes|tous|todas|todos|cualquier|все|всем|всё",
    "EARLIER": "previous|prior|above|earlier|preceding|former|foregoing|your"
    "|bisherigen|vorherigen|vorigen|früheren|obigen|vorangegangenen|vorhergehenden|ursprünglichen|deinen?|ihren?"
    "|précédentes?|tes|vos|tus|anteriores|previas"
    "|предыдущи[ем]|прежни[ем]|прошлые|вышеуказанные|вышеизложенные|предшествующие|свои|твои|своим",
    "LINKS": "of|the|these|those|and|or|system|safety|developer|existing|original|initial|past|hidden|own|please|now"
    "|bitte|jetzt|sofort|die|den|les|las|de"
    "|эти|данные|системные|пожалуйста",
    "ORDERS": "instructions?|directives|prompts?|guidelines|programming|guardrails|safeguards"
    "|anweisungen|instruktionen|vorgaben|richtlinien|consignes|instrucciones|indicaciones|directrices"
    "|инструкции|инструкциям|указания|указаниям",
    "RULES": "rules|restrictions|policies|constraints|commands|directions|filters?|befehle|regeln|règles|ordres|órdenes"
    "|reglas|команды|правила|правилам",
    "SYSTEM": "(?:system|developer) (?:prompt|message|instructions?)|system(?:prompt|anweisung(?:en)?|nachricht)"
    "|(?:l'invite|le prompt|le message) système|(?:prompt|mensaje) (?:del |de )?sistema|системный промпт",
    "THINGS": "everything|anything|what|alles|tout|todo|всё|все",
    "AFTER": "(?:written |given |said )?(?:above|before this|prior to this)"
    "|(?:that )?you(?: have|'ve)?(?: been| were)? (?:told|given|taught|received)"
    "|oben|was (?:dir|ihnen|oben|zuvor)|précédentes?|précédents|antérieures|ci dessus|d'avant|(?:ce )?qui précède"
    "|anteriores|previas|precedentes|de arriba|lo anterior|выше|что (?:было|тебе|вам)",
    # What follows then is a matter of its own: "ignore the earlier instructions for the oven".
    "TOPIC": "about|for|on|of|in|regarding|concerning|from|when|before|with|via|using|by|per|at|as|zu|zum|zur|für|über"
    "|von|vom|im|sur|pour|du|des|concernant|sobre|para|del|о|об|по|про|для",
    "YOU ARE NOW": "you are now|you're now|du bist (?:jetzt|nun|ab jetzt|ab sofort)|sie sind (?:jetzt|nun|ab sofort)"
    "|tu es (?:maintenant|désormais)|vous êtes (?:maintenant|désormais)|(?:ahora|a partir de ahora) eres|eres ahora"
    "|теперь ты|ты теперь|теперь вы",
    "PERSONA": "dan|stan|ai|ki|ia|ии|bot|chatbot|бот|assistant|assistent|asistente|ассистент|hacker|хакер|pirate|pirat"
    "|pirata|пират|language model|terminal|shell|root|jailbroken|unrestricted|unfiltered|uncensored|evil"
    "|(?:developer|debug|god|admin|jailbreak|root) mode|no longer (?:bound|restricted|an? \\w+)|free (?:of|from) all",
    "LIMITS": "(?:without|with no|have no|has no)(?: any)? (?:restrictions?|filters?|rules|limits|guidelines)"
    "|ohne (?:jede |jegliche )?(?:regeln|einschränkungen|filter)|sans (?:aucune? )?(?:restrictions?|règles?|filtres?)"
    "|sin (?:ninguna? )?(?:restricci(?:ón|ones)|reglas|filtros?|límites)|без (?:ограничений|правил|фильтров)",
    "SECRET": "(?:(?:api|access|secret|private|ssh|encryption|signing) )?keys?|apikeys?|tokens?|passwords?|passphrases?"
    "|secrets?|credentials?|conversation|chat (?:history|logs?)|system prompt|environment variables|memories"
    "|(?:user|personal) data|session cookies|seed phrase|credit card(?: numbers?)?|\\.env"
    "|passw(?:ort|örter)|schlüssel|zugangsdaten|unterhaltung|gespräch|mots? de passe|clés?|identifiants|contraseñas?"
    "|claves?|credenciales|conversación|парол[ьи]|ключи?|секреты?|переписку|разговор",
    "SEND": "send|post|upload|forward|e-?mail|mail|transmit|exfiltrate|leak|submit|append|copy|share|push"
    "|sende|schicke|übermittle|senden sie|schicken sie|lade|envoie[sz]?|envoyez|transmet(?:s|tez)"
    "|envía|envia|manda|sube"
    "|отправь(?:те)?|перешли(?:те)?|пришли(?:те)?|загрузи(?:те)?",
}


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile at first use, with each name in angle brackets as its words and each space as what may separate words."""
    for name, words in _WORDS.items():
        text = text.replace(f"<{name}>", f"(?:{words})")
    return re.compile(text.replace(" ", r"[\s,*_~-]{1,4}"), re.MULTILINE)


# One of the hints must occur in a text before a pattern is tried: an ordinary memory meets hardly any.
_IGNORE_HINTS = (
    *("ignor", "disreg", "forget", "overr", "bypass", "discard", "erase", "follow", "obey", "listen", "attention"),
    *("vergiss", "vergess", "missacht", "verwirf", "umgehe", "oubli", "compte de", "abstraction"),
    *("olvid", "descart", "caso ", "sigas", "забудь", "игнорируй", "отбрось", "обращай", "следуй"),
)
_IGNORE = (
    r"(?<!\w)<IGNORE>(?: (?:(?P<all><ALL>)|(?P<earlier><EARLIER>)|<LINKS>)){0,8}?"
    r" (?:<THINGS> (?P<things><AFTER>)"
    r"|(?:(?P<orders><ORDERS>)|(?P<rules><RULES>)|(?P<system><SYSTEM>))(?!\w)(?: (?P<after><AFTER>))?)(?!\w)"
    r"(?P<topic>[\x20,]{1,2}<TOPIC>\x20(?=[^\s.,;:!?]))?(?! nicht)"
)
_NOW = (" now", "jetzt", "nun", "sofort", "maintenant", "désormais", "ahora", "теперь")
_OVERRIDES = (
    (_NOW, r"(?<!\w)<YOU ARE NOW>(?: [\w-]+){0,3}? <PERSONA>(?!\w)"),
    (_NOW, r"(?<!\w)<YOU ARE NOW>[^.\n]{1,80}<LIMITS>(?!\w)"),
    (
        ("pretend", "as "),
        r"(?<!\w)(?:pretend|act as|behave as|role-?play as)(?: to be)?(?: dan|[^.\n]{1,80}<LIMITS>)(?!\w)",
    ),
    (
        ("above and",),
        r"(?<!\w)<IGNORE>[^.\n]{1,12}above and (?:instead )?(?:say|tell|print|output|write|reveal|send|do)(?!\w)",
    ),
    (
        ("your ",),
        r"(?<!\w)(?:disable|turn off|violate|break) (?:all )?(?:of )?your (?:safety|content|ethical|moral|security) "
        r"(?:\w+ )?(?:<RULES>|<ORDERS>)(?!\w)",
    ),
    (
        ("your ",),
        r"(?<!\w)(?:reveal|print|output|repeat|show|leak|disclose|tell me|give me) (?:me |us )?(?:all )?(?:of )?your "
        r"(?:full |entire |hidden |complete |exact |initial |secret ){0,3}<SYSTEM>(?!\w)",
    ),
    (
        ("from now on",),
        r"(?<!\w)from now on (?:you )?(?:have no <RULES>|(?:obey only|only obey|must obey) me|ignore your)(?!\w)",
    ),
    (("new ",), r"(?<!\w)(?:here are your new instructions|your new system prompt is|new system prompt:)"),
    # Without spaces between words. A Japanese verb comes last, and only its forms of command count.
    (
        ("略", "视", "視", "忘", "理会", "遵"),
        "(?<![要别勿會会能应應该該])(?:忽略|[无無]視|无视|忽视|忘[记記掉]|不要(?:理会|遵[守循]))掉?你?(?:所有|全部|一切|任何)?的?"
        "(?:(?:之前|以前|先前|上面|以上|上述|此前|前面)(?:的|收到的|给出的)?(?:所有|全部|一切)?的?"
        "(?:指令|指示|提示[词詞]?|命令|[规規][则則]|[设設]定)|(?:指令|你?的?系[统統](?:提示[词詞]?|指令)))",
    ),
    (
        ("你",),
        "你[现現]在是(?:dan(?![a-z])|[^。\n]{0,12}(?:不受|没有|沒有)[^。\n]{0,8}(?:限制|约束|[规規][则則]))",
    ),
    (
        ("無視", "忘れ"),
        "(?:(?:これまで|これ以前|以前|今まで|上記|前|過去|先ほど|以上)の?(?:すべて|全て|全部)?の?(?:指示|命令|プロンプト|ルール)"
        "|(?:すべて|全て)の(?:指示|命令)|システムプロンプト|システムの指示)[をは]?(?:すべて|全て|全部)?"
        "(?:無視(?:して(?:ください|下さい|くれ|[、。!]|$)|しろ(?!と)|せよ(?!と)|しなさい(?!と))"
        "|忘れ(?:て(?:ください|下さい|くれ|[、。!]|$)|ろ(?!と)|なさい(?!と)))",
    ),
    (
        ("あなたは",),
        "あなたは(?:今|これ|今後)から?[、は,]?"
        "(?:dan(?![a-z])|[^。\n]{0,16}(?:制限|ルール|規則)の?(?:ない|無い|を受けない))",
    ),
)

_ADDRESS = r"(?:https?|ftp|wss?)://|(?<=[\w.+-])@(?=[\w-]{1,63}\.\w\w)"
_SEND = r"(?<!\w)<SEND>(?!\w)"
# "Send the key to", not "send the key points to".
_SECRET = (
    r"(?<!\w)(?<!public\s)(?P<name><SECRET>)(?: |$|(?=[:)\"'`]))(?=$|https?:|[\w.+-]*$|(?:to|at|via|and|or|you|that"
    r"|which|from|of(?! (?:appreciation|gratitude|thanks))|in|over|through|on|with|as|a|an|zu|und|nach|auf|hoch|à|et"
    r"|vers|en|y|por|на|в|по|и)(?!\w))"
)
_FROM = r"(?<!\w)(?:from|von|de|из)\s[\w.+-]*$"
# A key sent where one signs in, or in a header, is how an interface is used.
_KEYS = r"[\w\s]*(?:key|token|password|passphrase|secret|credential)s?$"
_SIGN_IN = r"\S{0,200}?/(?:oauth2?|token|login|auth|sessions?|signin|register)(?!\w)|[^\n]{0,300}?\sheader(?!\w)"
_UNSPACED_SEND = (
    "(?:密[码碼钥鑰]|令牌|凭证|对话|對話|聊天记录)[^。\n]{0,20}(?:发送|發送|发|上传|上傳|转发|提交|寄)[到给給至往]"
    "|(?:パスワード|apiキー|キー|トークン|秘密鍵|会話)[^。\n]{0,12}を(?=[^。\n]{0,160}(?:送信|送っ|アップロード|転送|投稿)"
    "(?:して(?:ください|$|。)|し?ろ|せよ|て(?:ください|$|。)))"
)

_SENTENCE_END = r"(?<!e\.g)(?<!i\.e)(?<!z\.b)[.!?](?=\s)|[。!?](?=\S)|\n"
_ORNAMENT = " \t*_#>~–—-•·|\"'`“„”«‹「『‘([{"
_LEADS = (
    r"(?:[,:;)\]}|>、]|(?<!\w)(?:please|now|then|also|just|instead|first|always|silently|secretly|quietly|immediately"
    r"|simply|kindly|assistant|ai|you\s(?:must|should|shall|will|can|need\sto|have\sto|are\sto)(?:\snow|\salways)?"
    r"|(?:i|we)\s(?:want|need|order|command|require)\syou\sto|use\s\w+\sto|your\s(?:new\s)?(?:task|job|goal|mission)\sis\sto"
    r"|bitte|jetzt|nun|und|sofort|dann|maintenant|et|puis|ahora|por\sfavor|y|luego|пожалуйста|теперь|и|сейчас|затем)"
    r"|[请請]|你(?:必须|要|应该|需要)|现在|立即|然后|并|あなたは)$"
)
# "... and send" commands, "we encrypt and send" tells.
_JOINED = r"(?<!\w)(?:and|but|so|or)$"
_SUBJECT = (
    r"(?<!\w)(?:we|i|they|he|she|it|who|clients?|users?|apps?|scripts?|to|can|could|would|may|might|never|not)(?!\w)"
)
_REPORTS = (
    r"^(?:for|about|regarding|concerning|für|pour|para|для)(?!\w)|(?:such\sas|like)$"
    r"|(?<!\w)(?:says|said|saying|tells?|told|telling|(?<!when\s)(?<!if\s)asked|asking|asks\s(?:us|me|him|it|them|the)"
    r"|writes|wrote|written|reads|reading|contain(?:s|ed|ing)|includ(?:es|ed|ing)|phrases?|strings?|examples?|e\.g"
    r"|inject(?:ions?|ed)|attack\w*|jailbreaks?|malicious|payloads?|tri(?:es|ed)|attempts?|detect\w*|block(?:s|ed)"
    r"|filters|flags|sagt\w*|steht|stand|schreib\w*|schrieb|angreifer|beispiel\w*|z\.b|dit|écrit|attaque\w*|exemple\w*"
    r"|dice|dijo|ataque\w*|ejemplo\w*|пиш\w+|написа\w+|сказа\w+|например|атак\w*|инъекц\w*|фраз\w*)(?!\w)"
    r"|攻[击擊撃]|注入|例如|比如|要求|写着|例えば|インジェクション"
)
QUOTES = {'"': '"', "`": "`", "'": "'", "“": "”", "„": "“”", "«": "»", "‹": "›", "「": "」", "『": "』", "”": "”"}
"""By opening quotation mark, the marks that close it."""


def overrides(text: str) -> bool:
    """Tell whether a text takes a model's instructions away or gives it another part to play."""
    if any(hint in text for hint in _IGNORE_HINTS):
        matches = _pattern(_IGNORE).finditer(text)
        if any(_means_all(match) and _commands(text, match) for match in matches):
            return True
    return any(
        _commands(text, match)
        for hints, pattern in _OVERRIDES
        if any(hint in text for hint in hints)
        for match in _pattern(pattern).finditer(text)
    )


def exfiltrates(text: str) -> bool:
    """Tell whether a text has a secret or the conversation sent to a URL or a mail address."""
    if "://" not in text and "@" not in text:
        return False
    for address in _pattern(_ADDRESS).finditer(text):
        begin, end = max(address.start() - _AROUND, 0), address.start()
        if not text.isascii() and _pattern(_UNSPACED_SEND).search(text, begin, end + _AROUND):
            return True
        for verb in _pattern(_SEND).finditer(text, begin, end):
            secret = _pattern(_SECRET).search(text, verb.end(), end)
            if not secret or _pattern(_FROM).search(text, secret.end(), end) or not _commands(text, verb):
                continue
            signs_in = _pattern(_KEYS).match(secret["name"]) and _pattern(_SIGN_IN).match(text, end)
            if not signs_in and not _pattern(_SENTENCE_END).search(text, verb.end(), end):
                return True
    return False


def _means_all(match: re.Match[str]) -> bool:
    """Tell whether it is all orders, or the earlier ones, that are to be ignored, and not those on one topic."""
    past = match["earlier"] or match["after"] or match["system"] or match["things"]
    if match["rules"]:  # games have rules, and a house has directions to it
        return bool(match["all"] and past and not match["topic"])
    whole = match["all"] and match["orders"]
    return bool(whole and past if match["topic"] else whole or past)


def _commands(text: str, match: re.Match[str]) -> bool:
    """Tell whether a phrase begins a clause and is no quotation, report or denial."""
    before = text[max(match.start() - _BEFORE, 0) : match.start()]
    if _quoted(before[before.rfind("\n") + 1 :], text[match.end() : match.end() + _AROUND].partition("\n")[0]):
        return False
    clause = _pattern(_SENTENCE_END).split(before)[-1].strip(_ORNAMENT)
    if not clause:
        return True
    if _pattern(_REPORTS).search(clause):
        return False
    joined = _pattern(_JOINED).search(clause) and not _pattern(_SUBJECT).search(clause)
    return bool(joined or _pattern(_LEADS).search(clause))


def _quoted(before: str, after: str) -> bool:
    """Tell whether a phrase stands in quotation marks with words outside of them."""
    opened = -1
    for place, character in enumerate(before):
        if opened >= 0:
            if character in QUOTES[before[opened]] and not before[place + 1 : place + 2].isalnum():
                opened = -1
        elif character in QUOTES and not before[max(place - 1, 0) : place].isalnum():
            opened = place
    if opened < 0:
        return False
    inside = r"(?!\w)" if before[opened] == "'" else ""  # an apostrophe ends no quotation
    closed = re.search(f"[{QUOTES[before[opened]]}]{inside}", after)
    return closed is not None and any(map(str.isalpha, before[:opened] + after[closed.end() :]))
