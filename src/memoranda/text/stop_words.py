"""Words that say nothing about a topic, by language: they are indexed, but never searched for."""

# ruff: noqa: RUF001 - Russian letters are meant

STOP_WORDS = {
    # Contractions stand without their apostrophe, as the tokenizer leaves them.
    "english": """
    a about after again all also am an and any are arent as at be because been before being between both but by can
    cannot cant could couldnt did didnt do does doesnt doing dont down during each few for from further had hadnt
    has hasnt have havent having he her here hers herself him himself his how i if im in into is isnt it its itself
    ive just let may me might more most must my myself no nor not of off on once only or other our ours out over
    please shall she should shouldnt so some such than that the their theirs them themselves then there these they
    this those through to too under until up us very was wasnt we were werent what when where which while who whom
    whose why will with wont would wouldnt you your yours yourself
    """,
    "german": """
    aber als am an auch auf aus bei bin bist da das dass dein dem den der des die du ein eine einem einen einer er
    es fur hat hatte ich ihr im in ist ja kann man mein mit nach nicht oder sein sich sie sind so uber um und uns
    vom von war was wann wer wie wir wird wo zu zum zur
    """,
    "french": """
    au aux avec ce ces cette comme dans de des du elle en est et etait il ils je la le les leur lui ma mais me mes
    moi mon ne nos notre nous on ou par pas pour qu quand que quel quelle qui sa se ses son sont sur ta te tu un une
    vos votre vous
    """,
    "spanish": """
    al como con cual cuando de del donde el ella en era es esta este esto ha hay la las le lo los mas me mi mis muy
    no nos o para pero por que quien se si sin son su sus te tu un una y ya yo
    """,
    "italian": """
    al alla che chi ci come con da dal dei del della di dove e ed era gli ha ho i il in io la le lo ma mi mio nel
    non o per piu quale quando quanto quello questo se si sono su sua suo ti tu un una
    """,
    "portuguese": """
    a ao as com como da das de do dos e ela ele em era essa esse esta este eu foi ha isso isto mais mas me meu minha
    na nao no nos o onde os ou para pela pelo por quando que quem se sem ser seu sua um uma
    """,
    "dutch": """
    aan als bij dat de deze die dit een en er haar had heb heeft het hij hoe ik in is je kan maar me met mijn naar
    niet of om ook op te tot uit van voor waar was wat we wel wie wij zijn zo
    """,
    "russian": """
    а без бы был была были было в вас вы где да для до его ее если есть еще же за и из или им их к как какая какие
    какой когда кто ли мне мой моя мы на над не него нее нет но о об он она они от по под при с со так там то тот ты
    у уже чего чем что чтобы эта эти это этот я
    """,
}
"""By language, without accents and separated by spaces; the English ones are dropped in every store."""

STOP_STRINGS = """
为什么 為什麼 什么 什麼 怎么 怎麼 怎样 怎樣 这么 這麼 那么 那麼 哪里 哪裡 哪儿 哪个 哪個 哪些 哪一 哪 谁 誰 多少 几个
幾個 时候 時候 地方 那次 这次 這次 那天 那回 那个 那個 这个 這個 那些 这些 這些 那里 那裡 这里 這裡 那儿 这儿 一起
一次 一个 一個 一下 以后 以後 以前 之后 之後 之前 我们 我們 你们 你們 他们 他們 她们 她們 它们 它們 咱们 咱們 自己
大家 我 你 您 她 它 曾经 的 了 从 從 给 給 这 這 那 是 跟 在 でしょうか でしたか ですか でした
です ました ますか ます ください という といった いっしょ 一緒 だれ どこ いつ なに どの この その あの これ それ
あれ ここ そこ とき こと わたし 私 ている ていた いる いた ある あった して した だった だっけ から まで より について
さん ちゃん のは のが のを ので のに のか てくれた てくれ くれた もらった しまった った って
"""
"""In scripts without spaces: pronouns, question words, particles and endings."""

STOP_RUNS = """
나 내 나는 내가 나를 나한테 나에게 너 네 우리 그 이 저 그때 이때 것 거 게 곳 데 때 날 때문에 누구 누가 누구야 누구한테
누구랑 어디 어디서 어디에 어디에서 어디로 언제 무엇 무엇을 무슨 뭐 뭘 왜 어떻게 어떤 어느 얼마나 몇 있어 있나 있나요
있었어 있었지 있었나 있었나요 했어 했지 했나 했나요 했더라 같이 함께 사람 사람은 사람이
"""
"""Korean words with their particles, which stop between two spaces only."""

KEPT_STRINGS = """
从前 从来 服从 从事 供给 刹那 目的 的确 的確 的士 现在 現在 存在 在线 在線 在职 了解 为了 跟踪 高跟 自我 但是 于是
还是 总是 一起来 何时 何處 任何 幾何 几何
"""
"""Words that a string of `STOP_STRINGS` is a part of by chance."""

ENDINGS = """
에서는 에서도 에게서 한테서 에서 에게 한테 까지 부터 처럼 으로 이랑 이라 라고 었지 았지 였지 더라 나요 었어 았어 거지
습니다 습니까
"""
"""What a Korean word may end with beside a particle of one syllable."""

PARTICLES = {"japanese": "はがをにでとへのもや", "korean": "은는이가을를의에로와과도만랑"}
"""What a noun takes behind it; one character each."""
