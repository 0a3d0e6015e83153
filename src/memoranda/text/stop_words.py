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

# Question words and particles of Chinese; a pair made of these alone says nothing about a topic.
STOP_CHARACTERS = frozenset("的了是吗呢吧啊么什怎哪")
STOP_PAIRS = frozenset(("です", "ます", "すか", "した", "ここ", "これ", "それ", "いつ", "どこ", "から"))
