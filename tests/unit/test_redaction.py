"""Secrets go, prose stays."""

import re
from decimal import Decimal
from uuid import UUID

import pytest

from memoranda.redaction import redact, redact_value

# Put together here, so that no scanner takes this file for a leak.
BODY = "A1b2C3d4E5f6G7h8J9k0" * 3
SECRETS = {
    "private-key": [
        f"-----BEGIN {kind}PRIVATE KEY-----\nMIIB{BODY}\n-----END {kind}PRIVATE KEY-----"
        for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ")
    ],
    "anthropic-key": ["sk-" + "ant-api03-" + BODY[:24]],
    "openai-key": ["sk-" + "proj-" + BODY[:30], "sk-" + BODY[:48]],
    "github-token": [*("gh" + letter + "_" + BODY[:36] for letter in "posru"), "github_" + "pat_" + BODY[:40]],
    "gitlab-pat": ["glpat" + "-" + BODY[:20]],
    "slack-token": ["xox" + letter + "-" + BODY[:12] for letter in "baprs"],
    "aws-key": ["AK" + "IA" + "ABCDEFGHIJ234567"],
    "google-key": ["AI" + "za" + BODY[:35]],
    "stripe-key": ["sk" + "_live_" + BODY[:24]],
    "huggingface-token": ["hf" + "_" + BODY[:34]],
    "npm-token": ["npm" + "_" + BODY[:36]],
    "jwt": ["eyJ" + BODY[:20] + ".eyJ" + BODY[:20] + "." + BODY[:43]],
}  # fmt: skip


@pytest.mark.behaviour("W27", "W28")
@pytest.mark.parametrize(
    ("kind", "secret"), [(kind, secret) for kind, secrets in SECRETS.items() for secret in secrets]
)
def test_a_known_shape_is_replaced_in_place_and_keeps_its_kind(kind: str, secret: str) -> None:
    mark = f"[REDACTED:{kind}]"
    assert redact(f"the key is {secret} for now") == f"the key is {mark} for now"
    assert redact(f"token: {secret}") == f"token: {mark}"
    assert redact(f'{{"api_key": "{secret}"}}') == f'{{"api_key": "{mark}"}}'
    assert redact(f"({secret}, {secret})") == f"({mark}, {mark})"


@pytest.mark.behaviour("W27")
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("DB_PASSWORD=s3cret99", "DB_PASSWORD=[REDACTED:credential]"),
        ("export DB_PASSWORD=swordfish; make", "export DB_PASSWORD=[REDACTED:credential]; make"),
        (f"AWS_SECRET_ACCESS_KEY={BODY[:40]}", "AWS_SECRET_ACCESS_KEY=[REDACTED:credential]"),
        ('{"user": "ana", "password": "swordfish"}', '{"user": "ana", "password": "[REDACTED:credential]"}'),
        ("{'token': 'abcd1234'}", "{'token': '[REDACTED:credential]'}"),
        ('"{\\"password\\": \\"swordfish\\"}"', '"{\\"password\\": \\"[REDACTED:credential]\\"}"'),
        ("db_password: swordfish", "db_password: [REDACTED:credential]"),
        ("dbPassword=swordfish", "dbPassword=[REDACTED:credential]"),
        ("api-key: k9x8y7z6", "api-key: [REDACTED:credential]"),
        ("password: hunter2", "password: [REDACTED:credential]"),
        ("The wifi password: Correct-Horse-99.", "The wifi password: [REDACTED:credential]."),
        ("My password is hunter2x, write it down", "My password is [REDACTED:credential], write it down"),
        ("my password: correcthorse", "my password: [REDACTED:credential]"),
        ("secret: token: hunter22x", "secret: token: [REDACTED:credential]"),
        ("Authorization: Bearer x", "Authorization: Bearer [REDACTED:credential]"),
        (f'-H "Authorization: Basic {BODY[:20]}=="', '-H "Authorization: Basic [REDACTED:credential]"'),
        (f"it sends Bearer {BODY[:20]} each time", "it sends Bearer [REDACTED:credential] each time"),
        ("redis://:pw@cache:6379/0", "redis://:[REDACTED:url-password]@cache:6379/0"),
        ("postgresql+psycopg://ana:pw@db/app", "postgresql+psycopg://ana:[REDACTED:url-password]@db/app"),
        ("amqp://ana:pa/ss@mq.example.com/v", "amqp://ana:[REDACTED:url-password]@mq.example.com/v"),
        ("https://ana:p@ss@example.com/x", "https://ana:[REDACTED:url-password]@example.com/x"),
    ],
)
def test_an_assigned_secret_goes_and_its_key_user_and_host_stay(text: str, redacted: str) -> None:
    assert redact(text) == redacted


# Around each secret: ⟪kind:secret⟫, or ⟪secret⟫ for a credential; ~ is a line's end, {} nothing.
SENTENCES = r"""
two in one line: DB_PASSWORD=⟪s3cret99⟫ API_KEY=⟪k9x8y7z6⟫ end
DB_PASSWORD=⟪s3cret99⟫;API_KEY=⟪k9x8y7z6⟫
password: ⟪hunter2x⟫ and token: ⟪abcd1234⟫
{"password": "⟪it's-me-99⟫", "next": 1}
{"password": "⟪a\"b\"c-99⟫", "next": 1}
{"password":"⟪hunter2,with;marks(and)more⟫"}
{"db": {"host": "x", "pass": "⟪swordfish⟫"}}
{"secret": "⟪correct horse battery staple⟫"}
{"accessToken": "⟪abcdefgh⟫", "expires_in": 3600}
{"clientSecret":"⟪swordfish⟫"}
{"passwords": ["⟪hunter2⟫", "⟪swordfish⟫"], "n": 2}
"{\"api_key\": \"⟪swordfish⟫\", \"a\": 1}"
{"password": ⟪12345678⟫, "a": 1}
{"name": "DB_PASSWORD", "value": "⟪swordfish⟫"}
- name: DB_PASSWORD~  value: ⟪swordfish⟫~- name: B
db:~  user: ana~  db_password: ⟪swordfish⟫~  port: 5432
db:~  password: "⟪swordfish⟫"~  port: 5432
password: '⟪it"s me\'99⟫'
token: ⟪9f8e7d6c5b4a⟫  # rotate
POSTGRES_PASSWORD=⟪swordfish⟫~POSTGRES_USER=ana
SMTP_PASS=⟪swordfish⟫
SECRET_KEY='⟪django-insecure-abc$%^&⟫'
DB_PASSWORD="⟪$ecret!99x⟫"
DB_PASSWORD=⟪hun,ter2⟫
password=⟪wrong-horse-battery⟫
password = "⟪swordfish⟫"
PASSWORD = '⟪swordfish⟫'
api_key="⟪swordfish⟫"
password: str = "⟪swordfish⟫"
conn = connect(host="db", password="⟪swordfish⟫", port=1)
conn = connect(host='db', password='⟪swordfish⟫')
os.environ["DB_PASSWORD"] = "⟪swordfish⟫"
config['password'] => '⟪swordfish⟫',
if password == "⟪hunter2⟫":
set_password("⟪hunter2x⟫")
password = b"⟪swordfish⟫"
let token := ⟪abcd1234efgh⟫
export DB_PASSWORD=⟪swordfish⟫
export TOKEN="⟪abc def ghi⟫"
TOKEN=⟪abcdef123⟫ make deploy
postgres://ana:⟪url-password:p@ss/wd⟫@db.example.com/app
postgresql://ana:⟪url-password:p%40ss%2Fwd⟫@db/app
redis://:⟪url-password:pw⟫@cache:6379/0
rediss://default:⟪url-password:s/e@c⟫@cache.example.com:6380
mongodb+srv://ana:⟪url-password:hunter2⟫@cluster0.ab1cd.mongodb.net/?w=majority
see https://ana:⟪url-password:hunter2⟫@example.com/x?y=a@b.example, thanks
https://oauth2:⟪url-password:abc⟫@gitlab/team/x.git
链接https://ana:⟪url-password:hunter2⟫@example.com/的页面
jdbc:mysql://db/app?user=ana&password=⟪hunter2⟫&ssl=true
https://api.example.com/v1?api_key=⟪abcd1234⟫&q=tea
https://api.example.com/v1?q=tea&access_token=⟪abcd1234⟫
callback%3Ftoken%3D⟪abcd1234efgh⟫
mysql --user ana --password ⟪swordfish⟫ shop
app --password ⟪hunter2x⟫
app --password=⟪swordfish⟫ --verbose
app --token ⟪abcd1234⟫ run
app --api-key ⟪abcd-efgh-1234⟫
["--password", "⟪hunter2x⟫"]
app --db-password '⟪swordfish⟫' --host db
Connect -Password ⟪hunter2x⟫ -User ana
mysql -u root -p⟪swordfish⟫ shop
sshpass -p ⟪swordfish⟫ ssh ana@host
sshpass -p '⟪sword⟫' ssh ana@host
docker login -u ana -p ⟪swordfish⟫ registry.example.com
redis-cli -h cache -a ⟪swordfish⟫ ping
curl -u ana:⟪swordfish⟫ https://example.com
curl -s -X POST --user "ana:⟪sword fish⟫" x
curl --user ana:⟪swordfish⟫ -d x=1 https://example.com/
Authorization: Bearer ⟪x⟫
Authorization: Bearer ⟪swordfish⟫
authorization: bearer ⟪abcd1234⟫
-H 'Authorization: Bearer ⟪abcdef1234⟫' -H 'Accept: x'
{"Authorization": "Bearer ⟪abcd1234⟫"}
{"Authorization": "⟪abcdefghijklmn0p⟫"}
Authorization: Basic ⟪YW5hOmh1bnRlcjI=⟫
Authorization: Token ⟪abcd1234⟫
Proxy-Authorization: Basic ⟪YW5hOmh1bnRlcjI=⟫
X-Api-Key: ⟪abcd1234⟫
X-Api-Key: ⟪swordfish⟫
-H "X-Auth-Token: ⟪abcd1234⟫"
Ocp-Apim-Subscription-Key: ⟪0123456789abcdef0123456789abcdef⟫
Cookie: sessionid=⟪abcdef1234567890⟫; theme=dark
Set-Cookie: sid=⟪s%3Aabcdef.1234567890⟫; Path=/; HttpOnly; Expires=Wed, 21 Oct 2026 07:28:00 GMT
Server=db;Database=app;User Id=ana;Password=⟪swordfish⟫;Encrypt=true
Driver={x};UID=ana;PWD=⟪swordfish⟫;
Password=⟪hunter2⟫;Server=db
host=db user=ana password=⟪swordfish⟫ dbname=app
DefaultEndpointsProtocol=https;AccountName=ana;AccountKey=⟪azure-key:{BODY}==⟫;EndpointSuffix=x
Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=⟪azure-key:{BODY}=⟫
https://x.blob.core.windows.net/c?sv=2022&sig=⟪azure-key:{BODY}%3D⟫&se=2026
⟪aws-key:AS{}IAABCDEFGHIJ234567⟫ expired
aws_secret_access_key = ⟪wJalr+{BODY}⟫
aws_session_token=⟪FwoG{BODY}//{BODY}⟫
Secret access key: ⟪wJalr/{BODY}⟫
it uses ⟪google-oauth:ya29{}.a0{BODY}⟫ now
client ⟪google-oauth:GOC{}SPX-{BODY}⟫
⟪github-token:github{}_pat_{BODY}_{BODY}⟫
⟪slack-token:xa{}pp-1-A012-345-{BODY}⟫
https://hooks.slack.com/services/⟪webhook:T0123/B0123/{BODY}⟫
https://discord.com/api/webhooks/⟪webhook:123456789012/{BODY}⟫
bot 123456789:⟪telegram-token:AA{BODY33}⟫ started
https://api.telegram.org/bot123456789:⟪telegram-token:AA{BODY33}⟫/getMe
⟪sendgrid-key:S{}G.{BODY}.{BODY}⟫
twilio ⟪twilio-key:S{}K0123456789abcdef0123456789abcdef⟫
⟪stripe-key:r{}k_live_{BODY}⟫ and ⟪stripe-key:s{}k_test_{BODY}⟫
⟪openai-key:s{}k-or-v1-{BODY}⟫
⟪service-token:dckr{}_pat_{BODY}⟫
⟪service-token:hv{}s.{BODY}⟫
⟪service-token:pypi{}-AgEIcHlwaS5vcmc{BODY}⟫
⟪private-key:-----BEGIN PGP PRIVATE KEY BLOCK-----~~lQdG{BODY}~=abcd~-----END PGP PRIVATE KEY BLOCK-----⟫ after
⟪private-key:-----BEGIN OPENSSH PRIVATE KEY-----~b3Blb{BODY}~{BODY}⟫
before ⟪private-key:-----BEGIN RSA PRIVATE KEY-----~MIIB{BODY}~{BODY}⟫~and then prose
{"private_key": "⟪private-key:-----BEGIN PRIVATE KEY-----\nMIIB{BODY}\n-----END PRIVATE KEY-----⟫\n", "x": 1}
⟪private-key:-----BEGIN ENCRYPTED PRIVATE KEY-----~MIIB{BODY}~-----END ENCRYPTED PRIVATE KEY-----⟫
jwt ⟪jwt:{JWT}⟫ and 令牌⟪jwt:{JWT}⟫的
密钥⟪github-token:{GH}⟫的
url%3D⟪github-token:{GH}⟫%26x
{"log": "first\n⟪github-token:{GH}⟫\n"}
密码：⟪hunter2⟫，请保密
我的密码是⟪hunter2x⟫。
password：⟪hunter2⟫，请保密
パスワードは⟪hunter2x⟫です
비밀번호는 ⟪hunter2x⟫입니다
пароль: ⟪hunter2x⟫
Пароль от вайфая — ⟪Qwerty123⟫
Das Passwort ist ⟪hunter2x⟫.
Passwort für das WLAN: ⟪Hunter2x⟫!
the password for the router is ⟪Xy7kkq2p⟫
My wifi password is ⟪hunter2x⟫, write it down
password: “⟪swordfish⟫”
password: „⟪hunter2x⟫“
the password is ‘⟪hunter2x⟫’
api_key=«⟪abcd1234⟫»
**Password:** ⟪hunter2x⟫
- `DB_PASSWORD`: `⟪hunter2x⟫`
<password>⟪swordfish⟫</password>
<add key="Password" value="⟪swordfish⟫"/>
machine example.com login ana password ⟪swordfish⟫
CREATE USER ana IDENTIFIED BY '⟪swordfish⟫';
ALTER ROLE ana WITH PASSWORD '⟪hunter2x⟫';
The API key is ⟪9f8e7d6c5b4a39281706⟫ for now
API key: ⟪9f8e7d6c5b4a⟫
the token is ⟪9f8e7d6c5b4a39281706⟫
bearer ⟪eyabcdef1234567890abcd⟫ is it
the OpenAI key is ⟪openai-key:{SK}⟫
passcode: ⟪482913⟫
PW: ⟪hunter2x⟫
mot de passe : ⟪hunter2x⟫
Contraseña: ⟪hunter2x⟫
my password: ⟪correcthorse⟫
"""
SHORT = {
    "~": "\n",
    "{BODY33}": BODY[:33],
    "{BODY}": BODY,
    "{GH}": SECRETS["github-token"][0],
    "{JWT}": SECRETS["jwt"][0],
}
SHORT |= {"{SK}": SECRETS["openai-key"][1], "{}": ""}


@pytest.mark.behaviour("W27", "W28")
@pytest.mark.parametrize("sentence", SENTENCES.strip().splitlines())
def test_a_secret_goes_wherever_it_stands_and_nothing_else_does(sentence: str) -> None:
    for short, long in SHORT.items():
        sentence = sentence.replace(short, long)
    marked = re.compile(r"⟪(?:([a-z-]+):)?(.*?)⟫", re.DOTALL)
    redacted = redact(marked.sub(r"\2", sentence))
    assert redacted == marked.sub(lambda found: f"[REDACTED:{found[1] or 'credential'}]", sentence)
    assert redact(redacted) == redacted


def test_values_are_redacted_deep() -> None:
    value = {
        "note": "password: hunter22",
        "login": {"user": "ana", "password": "swordfish", "token_type": "bearer"},
        "urls": ["redis://:pw@cache", 3, None, ("api_key=abcd1234",)],
        "password: hunter22": True,
        7: {"x"},
    }
    kept = {
        "note": "password: [REDACTED:credential]",
        "login": {"user": "ana", "password": "[REDACTED:credential]", "token_type": "bearer"},
        "urls": ["redis://:[REDACTED:url-password]@cache", 3, None, ("api_key=[REDACTED:credential]",)],
        "password: [REDACTED:credential]": True,
        7: {"x"},
    }
    assert redact_value(value) == kept
    assert redact_value(kept) == kept
    assert value["note"] == "password: hunter22"


def test_everything_under_a_secret_name_goes_however_deep() -> None:
    mark = "[REDACTED:credential]"
    value = {
        "password": ["swordfish", ("ab", {"x"}), {"old": "hunter2", "user": "ana"}],
        "apiKey": {"primary": "swordfish", "n": 123456, "short": 42, "on": True, "none": None},
        "client_secret": 12345678,
        "DB_PASSWORD": "",
        "private_key": b"swordfish",
        "auth-token": UUID(int=7),
        "credentials": Decimal("123456.5"),
        "Authorization": "Bearer swordfish",
        "passwords": frozenset({"one", "two"}),
        "pwd": "pw",
    }
    kept = {
        "password": [mark, (mark, {mark}), {"old": mark, "user": mark}],
        "apiKey": {"primary": mark, "n": mark, "short": 42, "on": True, "none": None},
        "client_secret": mark,
        "DB_PASSWORD": "",
        "private_key": mark,
        "auth-token": mark,
        "credentials": mark,
        "Authorization": mark,
        "passwords": frozenset({mark}),
        "pwd": mark,
    }
    assert redact_value(value) == kept
    assert redact_value(kept) == kept


@pytest.mark.parametrize(
    "value",
    [
        {"token_count": 20480000, "max_tokens": 1234567, "tokens": ["the", "cat"], "total_tokens": 123456},
        {"password_policy": "strict", "token_type": "bearer", "secret_name": "billing", "api_key_id": "17"},
        {"passwordless": "yes", "tokenizer": "bert", "keyword": "tea", "key": "value", "primary_key": 1234567},
        {"password": None, "secret": False, "token": "<your token>", "api_key": "${API_KEY}"},
        {"session_id": "550e8400-e29b-41d4-a716-446655440000", "hash": b"\x00\xff", "n": [1, 2.5, Decimal("3")]},
    ],
)
def test_names_that_describe_and_values_that_stand_for_secrets_stay(value: dict[str, object]) -> None:
    assert redact_value(value) == value


def test_the_kind_of_a_shape_is_kept_under_a_secret_name() -> None:
    assert redact_value({"token": SECRETS["npm-token"][0]}) == {"token": "[REDACTED:npm-token]"}


def test_bytes_are_searched_and_stay_bytes() -> None:
    assert redact_value(b"\xff " + SECRETS["npm-token"][0].encode()) == b"\xff [REDACTED:npm-token]"


def test_names_that_differ_in_their_secret_only_stay_two() -> None:
    assert redact_value({"password: hunter22": 1, "password: hunter33": 2}) == {
        "password: [REDACTED:credential]": 1,
        "password: [REDACTED:credential]'": 2,
    }
